"""The output formats of commands."""

from enum import StrEnum


class Format(StrEnum):
    """Output formats of exchanges."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"
    CSV = "csv"


class RecordsFormat(StrEnum):
    """Output formats of records: `export.record_formats.RecordFormat`, which imports much."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    RAW = "raw"


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
    """Output formats of a comparison."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class RuleFormat(StrEnum):
    """Output formats of what became of rules: those of a comparison, and two for other programs."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    JUNIT = "junit"
    SARIF = "sarif"
