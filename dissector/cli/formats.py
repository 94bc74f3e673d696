"""The formats that commands print and write in."""

from enum import StrEnum


class Format(StrEnum):
    """How an exchange is printed."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"
    CSV = "csv"


class ProbeFormat(StrEnum):
    """How a probe is printed: as a report, or its exchanges as `show` prints them."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"


class StatsFormat(StrEnum):
    """How statistics are printed."""

    TEXT = "text"
    JSON = "json"


class DiffFormat(StrEnum):
    """How a comparison is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
