"""Headers with a meaning that many clients share: `traceparent` (W3C Trace Context), and others as text or numbers."""

import re
from typing import Final, NamedTuple

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.ASCII)
_LONGS: Final = frozenset((
    "apicurio.value.globalId", "apicurio.key.globalId", "apicurio.value.contentId", "apicurio.key.contentId",
))  # fmt: skip
TRACEPARENT: Final = "traceparent"


class TraceParent(NamedTuple):
    """The parts of a `traceparent` header."""

    trace_id: str
    parent_id: str
    is_sampled: bool


def trace_parent(text: str) -> TraceParent | None:
    """Return the parts of a `traceparent`; None for an invalid one."""
    found = _TRACEPARENT.fullmatch(text.strip().lower())
    if found is None or found[1] == "ff" or not int(found[2], 16) or not int(found[3], 16):
        return None
    return TraceParent(found[2], found[3], bool(int(found[4], 16) & 1))


def header_value(name: str, content: bytes | None) -> str | bytes | int | None:
    """Return a header's value: text where it is UTF-8, the number of an id, else the bytes."""
    if content is None:
        return None
    if name in _LONGS and len(content) == 8:
        return int.from_bytes(content, "big")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def header_words(name: str, content: bytes | None) -> str:
    """Explain a header that is known; empty for others."""
    if name.lower() == TRACEPARENT and content is not None:
        parent = trace_parent(content.decode("utf-8", "replace"))
        if parent is not None:
            sampled = "sampled" if parent.is_sampled else "not sampled"
            return f"trace {parent.trace_id}, span {parent.parent_id}, {sampled}"
        return "not a valid traceparent"
    return ""
