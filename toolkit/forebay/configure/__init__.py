"""`forebay configure`: looks for settings under which a program runs faster, within a budget."""
