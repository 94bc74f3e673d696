"""What runs the views of `views.py`: apart from them, so that a command line can name it without their libraries."""

from enum import StrEnum


class ViewEngine(StrEnum):
    """An engine of SQL."""

    DUCKDB = "duckdb"
    SPARK = "spark"
