"""Characterise: what an application's I/O is like, and what a system can do [METHOD]."""
