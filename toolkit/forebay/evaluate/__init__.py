"""Whether a configuration is better than another, shown by runs."""
