"""What a key or a value holds, opened: its form, the value inside, the schema, and what is wrong.

Invariants:
  * a value has at most `limits.value_nodes` nodes and `limits.value_depth` levels, so whoever walks it may recurse;
  * it is made of dicts, lists, text, bytes, numbers, booleans and null.
"""

from typing import Final, NamedTuple

from dissector.core import limits
from dissector.core.finding import Finding, Severity

FORMS: Final = ("null", "text", "bytes", "json", "avro", "protobuf", "kafka")
"""What a key or a value may be; ``kafka`` is a record of Kafka's internal topics."""
NULL, TEXT, BYTES, JSON, AVRO, PROTOBUF, KAFKA = FORMS
PAYLOAD: Final = "payload"
_LISTS: Final = (list, tuple)


class UnreadableError(Exception):
    """Bytes that are not what they are said to be, or exceed a limit. The message is one plain line."""


class OpenedValue(NamedTuple):
    """A key or a value. `value` of text is a str, of bytes the bytes, of null None."""

    form: str
    value: object
    schema: str = ""
    """The schema that it names or was read by: ``schema 7``, ``schema 7 shop.Order``."""
    envelope: str = ""
    """``Connect`` (schema and payload), ``Debezium`` (before, after, op), ``CloudEvents``; or none."""
    problem: Finding | None = None

    @property
    def is_structure(self) -> bool:
        """Whether there are fields or elements inside."""
        return isinstance(self.value, dict | list)

    @property
    def inner(self) -> object:
        """The value without Connect's schema beside it."""
        if self.envelope.startswith("Connect") and isinstance(self.value, dict):
            return self.value.get(PAYLOAD)
        return self.value


def problem(words: str, code: str = "unreadable-value") -> Finding:
    """Return the finding for a key or a value that can't be opened."""
    return Finding(code, Severity.WARNING, words)


class NodeBudget:
    """Counts the nodes and levels of one value, and the bytes of names. Raises `UnreadableError` beyond the limits."""

    def __init__(self, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._left = bounds.value_nodes
        self._names_left = bounds.value_names
        self._bounds = bounds

    def take(self, depth: int) -> None:
        """Count a node at a depth."""
        self._left -= 1
        if self._left < 0:
            raise UnreadableError(f"more than {self._bounds.value_nodes:,} values inside")
        if depth > self._bounds.value_depth:
            raise UnreadableError(f"more than {self._bounds.value_depth} levels deep")

    def take_name(self, name: str) -> str:
        """Count a name that the schema gives, and return it."""
        self._names_left -= len(name)
        if self._names_left < 0:
            raise UnreadableError(f"more than {self._bounds.value_names:,} bytes of names of the schema")
        return name


def check_size(value: object, bounds: limits.Limits = limits.DEFAULT) -> None:
    """Raise `UnreadableError` if a value has too many nodes or levels; without recursion, as it may be deep."""
    level, depth, nodes = [value], 0, 0
    while level:
        depth, nodes = depth + 1, nodes + len(level)
        if nodes > bounds.value_nodes:
            raise UnreadableError(f"more than {bounds.value_nodes:,} values inside")
        if depth > bounds.value_depth:
            raise UnreadableError(f"more than {bounds.value_depth} levels deep")
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, _LISTS):
                below += each
        level = below
