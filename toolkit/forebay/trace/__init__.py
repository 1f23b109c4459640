"""Trace directories: what is known of the I/O of one run (docs/formats/trace-directory.md)."""
