"""Forebay's command and Python package: run, compare, doctor, testbed."""

from importlib import metadata

try:
    __version__ = metadata.version("forebay")
except metadata.PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0.1.0+source"
