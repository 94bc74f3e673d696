"""Values, paths and times of a comparison in words. They are as the wire has them: faces clean them."""

from collections import Counter
from typing import Final

from dissector.analysis.diff.kinds import Symbol, Value, Word
from dissector.analysis.diff.leaves import Label, Path, Step
from dissector.analysis.diff.meaning import Key
from dissector.core.text import duration
from dissector.protocol.schema.enums import enum_of, name_of

MOST_SAID: Final = 4
MOST_TEXT: Final = 60


def word(value: Value) -> str:
    """One value."""
    if isinstance(value, Symbol):
        return f"{value.kind} {value.text}" if value.text.startswith("#") else value.text
    if isinstance(value, Word):
        return value.text
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, bytes):
        return value.hex() or "empty"
    if value == "":
        return "empty"
    text = str(value)
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…"


def said(body: str, values: Counter[Value], path: str) -> str:
    """All values of the field at `path`, which has no labels: the most frequent first, then in their own order."""
    named = [(count, _named(body, value, path)) for value, count in values.items()]
    words = [text for _, text in sorted(named, key=lambda each: (-each[0], each[1]))]
    more = f" and {len(words) - MOST_SAID} more" if len(words) > MOST_SAID else ""
    return ", ".join(words[:MOST_SAID]) + more


def _named(body: str, value: Value, path: str) -> str:
    """A value with what its number is called."""
    if isinstance(value, int) and not isinstance(value, bool):
        enum = enum_of(body, path)
        name = name_of(enum, value) if enum else ""
        return f"{value} {name}" if name else word(value)
    return word(value)


def path_words(path: Path) -> str:
    """``topics[orders].partitions[0].partition``."""
    return "".join(_step(n, step) for n, step in enumerate(path))


def _step(n: int, step: Step) -> str:
    if isinstance(step, Label):
        return "[]" if step.value is None else f"[{word(step.value)}]"
    return f".{step}" if n else step


def about(key: Key) -> str:
    """What tells a key from others of its API."""
    subject = " ".join(word(each) if isinstance(each, Symbol) else each for each in key.subject)
    words = (
        f"for {subject}" if subject else "",
        f"answered {key.step}" if key.step else "",
        f"on the connections of match {key.matched}" if key.matched > 0 else "",
        f"matched by hand as number {-key.matched}" if key.matched < 0 else "",
    )
    return ", ".join(filter(None, words))


def times(count: int) -> str:
    """How often."""
    return "once" if count == 1 else f"{count:,} times"


def every(ns: float) -> str:
    """An interval."""
    return f"every {duration(round(ns))}"
