"""Values, paths and times of a comparison in words. They are as the wire has them: faces clean them."""

from collections import Counter
from typing import Final

from dissector.analysis.diff.compared_values import ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath, PathStep
from dissector.core.text import duration
from dissector.protocol.schema.enums import enum_of, name_of

MAX_LISTED: Final = 4
MAX_TEXT: Final = 60


def format_value(value: ComparedValue) -> str:
    """One value."""
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
    text = str(value)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def format_values(body: str, values: Counter[ComparedValue], path: str) -> str:
    """All values of the field at `path`, which has no labels: the most frequent first, then in their own order."""
    named = [(count, _named(body, value, path)) for value, count in values.items()]
    words = [text for _, text in sorted(named, key=lambda each: (-each[0], each[1]))]
    more = f" and {len(words) - MAX_LISTED} more" if len(words) > MAX_LISTED else ""
    return ", ".join(words[:MAX_LISTED]) + more


def _named(body: str, value: ComparedValue, path: str) -> str:
    """A value with what its number is called."""
    if isinstance(value, int) and not isinstance(value, bool):
        enum = enum_of(body, path)
        name = name_of(enum, value) if enum else ""
        return f"{value} {name}" if name else format_value(value)
    return format_value(value)


def format_path(path: LeafPath) -> str:
    """``topics[orders].partitions[0].partition``."""
    return "".join(_step(n, step) for n, step in enumerate(path))


def _step(n: int, step: PathStep) -> str:
    if isinstance(step, ElementLabel):
        return "[]" if step.value is None else f"[{format_value(step.value)}]"
    return f".{step}" if n else step


def describe_key(key: MatchingKey) -> str:
    """What tells a key from others of its API."""
    subject = " ".join(format_value(each) if isinstance(each, EntityName) else each for each in key.subject)
    words = (
        f"for {subject}" if subject else "",
        f"answered {key.step}" if key.step else "",
        f"on the connections of match {key.matched}" if key.matched > 0 else "",
        f"matched by hand as number {-key.matched}" if key.matched < 0 else "",
    )
    return ", ".join(filter(None, words))


def format_count(count: int) -> str:
    """How often."""
    return "once" if count == 1 else f"{count:,} times"


def format_interval(ns: float) -> str:
    """An interval."""
    return f"every {duration(round(ns))}"
