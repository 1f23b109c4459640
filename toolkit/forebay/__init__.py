"""Forebay's command and Python package: run, compare, doctor, testbed."""


def version() -> str:
    """Of the installed package."""
    from importlib import metadata  # takes a tenth of a command's start, and few ask

    try:
        return metadata.version("forebay")
    except metadata.PackageNotFoundError:  # a source tree that was not installed
        return "0.1.0+source"
