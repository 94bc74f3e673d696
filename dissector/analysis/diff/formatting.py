"""Values, paths, counts and explanations of a comparison as text. Not cleaned: whoever prints them does that."""

from collections import Counter
from typing import Final

from dissector.analysis.diff.compared_values import POSITION, ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath, PathStep
from dissector.core.text import duration
from dissector.protocol.schema.enums import enum_of, name_of

MAX_LISTED: Final = 4
POSITIONS: Final = {
    "epoch": "an epoch",
    "offset": "an offset",
    "timestamp": "a time",
    "timestamp_ms": "a time",
    "sequence": "a sequence number",
}
"""By the end of a field's name: what its positions are called."""


def format_value(value: ComparedValue) -> str:
    """Return one value as text: whole, as texts can differ at their ends. `compared_value` bounds its length."""
    if isinstance(value, EntityName):
        return f"{value.kind} {value.text}" if value.text.startswith("#") else value.text
    if isinstance(value, Placeholder):
        return value.text
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes):
        return value.hex() or "empty"
    if value == "":
        return "empty"
    return str(value)


def format_values(body: str, values: Counter[ComparedValue], path: str) -> str:
    """Return the values of the field at `path`, which has no labels: the most frequent first, then alphabetically."""
    named = [(count, _format_enum(body, value, path)) for value, count in values.items()]
    texts = [text for _, text in sorted(named, key=lambda each: (-each[0], each[1]))]
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return ", ".join(texts[:MAX_LISTED]) + more


def _format_enum(body: str, value: ComparedValue, path: str) -> str:
    """Return a value with the name of its number, if it has one."""
    if isinstance(value, int) and not isinstance(value, bool):
        enum = enum_of(body, path)
        name = name_of(enum, value) if enum else ""
        return f"{value} {name}" if name else format_value(value)
    if value == POSITION:
        return next((words for end, words in POSITIONS.items() if path.endswith(end)), format_value(value))
    return format_value(value)


def format_path(path: LeafPath) -> str:
    """Return ``topics[orders].partitions[0].partition``."""
    return "".join(_format_step(n, step) for n, step in enumerate(path))


def _format_step(n: int, step: PathStep) -> str:
    if isinstance(step, ElementLabel):
        return "[]" if step.value is None else f"[{format_value(step.value)}]"
    return f".{step}" if n else step


def describe_key(key: MatchingKey) -> str:
    """Describe what distinguishes a key from others of its API: ``for billing, with MEMBER_ID_REQUIRED``."""
    subject = " ".join(format_value(each) if isinstance(each, EntityName) else each for each in key.subject)
    parts = (
        f"for {subject}" if subject else "",
        f"with {key.step}" if key.step else "",
        f"on matched connections {key.matched}" if key.matched > 0 else "",
        f"in manual match {-key.matched}" if key.matched < 0 else "",
    )
    return ", ".join(filter(None, parts))


def format_occurrences(a: int, b: int) -> str:
    """Return how often both sides have something: ``once``, ``16 times``, ``3 vs 4 times``."""
    if a != b:
        return f"{a:,} vs {b:,} times"
    return "once" if a == 1 else f"{a:,} times"


def format_interval(ns: float) -> str:
    """Return ``every 3.0 s``."""
    return f"every {duration(round(ns))}"


def format_rate(count: int, ns: int) -> str:
    """Return ``4.0 a second``, or how many a minute."""
    rate = count * 1e9 / ns
    return f"{rate:.1f} a second" if rate >= 1 else f"{rate * 60:.1f} a minute"


def name_sides(explanation: str, a: str = "A", b: str = "B") -> str:
    """Return an explanation with the names of the sides filled in."""
    return explanation.replace("{a}", a).replace("{b}", b)
