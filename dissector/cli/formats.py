"""The output formats of commands."""

from enum import StrEnum


class Format(StrEnum):
    """Output formats of exchanges."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"
    CSV = "csv"


class ProbeFormat(StrEnum):
    """Output formats of a probe: a report, or its exchanges as `show` prints them."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"


class StatsFormat(StrEnum):
    """Output formats of statistics."""

    TEXT = "text"
    JSON = "json"


class DiffFormat(StrEnum):
    """Output formats of a comparison, and of what became of rules."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    JUNIT = "junit"
    """What became of rules only."""
    SARIF = "sarif"
    """The same."""
