"""Versions of installed distributions, each read once: their metadata is a file that takes a millisecond to parse."""

import importlib.metadata
from functools import cache


@cache
def version(distribution: str) -> str:
    """Return the version of a distribution. Raises `importlib.metadata.PackageNotFoundError`."""
    return importlib.metadata.version(distribution)
