"""Versions of installed distributions, each read once: their metadata is a file that takes a millisecond to parse."""

from functools import cache


@cache
def version(distribution: str) -> str:
    """Return the version of a distribution. Raises `importlib.metadata.PackageNotFoundError`."""
    import importlib.metadata  # on use: with what it imports it takes a tenth of the start

    return importlib.metadata.version(distribution)
