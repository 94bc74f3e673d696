"""What a field of the tree opens to besides its fields: the members of a text that is JSON, the lines of a long text.

They are no fields of the message: its own tree, and what filters and exports, does not have them.

Invariant: a member that is not written in the bytes as it is read (of a text that was masked, or decoded) has the bytes
of its whole field.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from dissector.core.text import clean
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.tree import Node
from dissector.records.values.json_spans import JsonMember, json_members
from dissector.records.values.json_values import looks_like_json

JSON_VALUE: Final = "JSON"
"""The type of nodes of members."""
WITHIN: Final = ".(json)"
"""Behind the path of the field, before that of a member in it."""
LONG_TEXT: Final = 48
"""Characters from which on a text opens to lines."""
MOST_TEXT: Final = 1 << 16
"""Characters that are shown of a text."""
LEAST_ACROSS: Final = 16


class LeafLine(NamedTuple):
    """A line of the text of a field."""

    text: str


def raw_text(node: Node) -> bytes | None:
    """Return the bytes of a leaf that is text; None of other fields."""
    if node.children or node.secret is not None:
        return None
    if isinstance(node.value, str):
        return node.value.encode("utf-8", "surrogatepass")
    return node.value if node.is_text and isinstance(node.value, bytes) else None


def may_open(node: Node) -> bool:
    """Return whether a leaf may have parts: it is cheap, and asked for each line."""
    raw = raw_text(node)
    return raw is not None and (len(raw) > LONG_TEXT or looks_like_json(raw))


def json_nodes(node: Node, message: ExchangeMessage) -> list[Node]:
    """Return the members of a leaf whose text is JSON, as nodes with their bytes; none of other fields."""
    raw = raw_text(node)
    if raw is None or not looks_like_json(raw):
        return []
    members = json_members(raw)
    begin = node.end - len(raw)
    is_raw = message.sources[node.source].data[begin : node.end] == raw
    return _nodes(members or (), node, node.path + WITHIN, begin if is_raw else None)


def _nodes(members: Sequence[JsonMember], field: Node, path: str, begin: int | None) -> list[Node]:
    found = []
    for each in members:
        start, end = (field.start, field.end) if begin is None else (begin + each.start, begin + each.end)
        at = path + each.name if each.name.startswith("[") else f"{path}.{each.name}"
        children = _nodes(each.children, field, at, begin)
        note = "" if each.kind == "value" or each.children else "{}" if each.kind == "object" else "[]"
        found.append(Node(each.name, at, JSON_VALUE, start, end, each.value, note, field.source, children=children))
    return found


def text_lines(node: Node, across: int) -> list[LeafLine]:
    """Return a long text in lines of so many cells, line breaks as in the text; cleaned."""
    raw = raw_text(node)
    if raw is None or len(raw) <= LONG_TEXT:
        return []
    text = raw.decode("utf-8", "replace")
    lines = []
    for line in text[:MOST_TEXT].splitlines():
        lines += wrap(clean(line), max(LEAST_ACROSS, across), replace_whitespace=False, drop_whitespace=False) or [""]
    if len(text) > MOST_TEXT:
        lines.append(f"… {len(text) - MOST_TEXT:,} more characters: y v copies the value")
    return [LeafLine(line) for line in lines]
