"""The formats that `show` prints in."""

from enum import StrEnum


class Format(StrEnum):
    """How an exchange is printed."""

    TEXT = "text"
    TREE = "tree"
    JSON = "json"
