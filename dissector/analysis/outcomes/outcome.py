"""What became of one rule in one capture."""

from enum import StrEnum
from typing import NamedTuple


class RuleStatus(StrEnum):
    """Whether a capture keeps a rule."""

    HELD = "held"
    BROKEN = "broken"
    ALLOWED = "allowed"
    """Broken, and the user does not mind."""
    NOT_SEEN = "not seen"
    """Nothing in the capture to hold it to."""


class RuleOutcome(NamedTuple):
    """One rule. Texts are as the wire has them: whoever prints them cleans them."""

    rule: str
    """Its name: ``versions.Fetch``."""
    status: RuleStatus
    message: str
    """What is so, or what is different."""
    file: str
    """The file that shows it, or that has the rule."""
    line: int | None = None
    """In that file, from 1; of text files."""
    exchange: int | None = None
    """The number of the first exchange that shows it, from 1."""
    source: str = ""
    """Where the rule comes from: a KIP, a schema file."""
    title: str = ""
    """What the rule requires."""
    client: str = ""
    """The client that it is held to, where a capture has several."""
