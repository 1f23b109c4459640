"""What a run's I/O cost, and what of it could be had back: one page of HTML, and a summary."""
