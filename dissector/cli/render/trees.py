"""`show --format tree`: every field with name, value, offset, size and type, indented, as in Wireshark's details.

Of short messages that have the same bytes but for their correlation id, as heartbeats and empty fetches have, one is
traced (`TreeTexts`).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dissector.cli.render.lines import row_line
from dissector.core.text import clean, counted
from dissector.exchange.info_column import session_words
from dissector.exchange.listing import latency_words
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.tls_words import handshake_fields
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message_layout import REQUEST_ID, RESPONSE_ID
from dissector.protocol.tree import Node

LONGEST: Final = 96
"""Characters of a value that are printed; longer ones are cut, with their length."""


LONGEST_KEPT: Final = 512
"""Bytes of a message whose text is kept."""
MOST_KEPT: Final = 1 << 22
"""Characters of all texts that are kept."""


class TreeTexts:
    """The texts of messages' trees, as long as what their notes say of ids is the same: one step of printing."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], _SplitTree] = {}
        self._contexts: dict[int, DecodingContext] = {}
        """By identity, which is theirs as long as they are here."""
        self._size = 0

    def lines(self, name: str, message: ExchangeMessage) -> Iterable[str]:
        """The lines of a message, or some of them together."""
        layout, data, context = message.layout, message.data, message.context
        place = REQUEST_ID if layout.header == "RequestHeader" else RESPONSE_ID
        is_kept = layout.header is not None and place.stop <= message.whole == message.size <= LONGEST_KEPT
        if not is_kept or layout.body in RECORDS_FIELDS:  # what may be decompressed depends on what was before it
            return _message(name, message)
        others = data[: place.start] + data[place.stop :]
        key = name, others, layout, message.masked, id(context)
        number = int.from_bytes(data[place], "big", signed=True)
        line = f"      correlation_id: {number}  [{place.start}+4 INT32]"
        text = self._kept.get(key)
        if text is None:
            lines = list(_message(name, message))
            if line not in lines:
                return lines
            at = lines.index(line)
            text = _SplitTree("\n".join(lines[:at]), "\n".join(lines[at + 1 :]))
            self._keep(key, text, context)
        return (text.before, line, text.after) if text.after else (text.before, line)

    def _keep(self, key: tuple[object, ...], text: "_SplitTree", context: DecodingContext) -> None:
        self._size += len(text.before) + len(text.after)
        if self._size > MOST_KEPT:
            self._kept.clear()
            self._contexts.clear()
            self._size = len(text.before) + len(text.after)
        self._contexts[id(context)] = context
        self._kept[key] = text


class _SplitTree(NamedTuple):
    """What is before the line with the correlation id, and behind it."""

    before: str
    after: str


def tree_lines(exchange: Exchange, start_ns: int, texts: TreeTexts | None = None) -> Iterator[str]:
    """Yield the lines of an exchange: its row, its findings, the trees of its messages. With `texts`, some of them come
    together."""
    of_message = _message if texts is None else texts.lines
    yield row_line(exchange.row, start_ns).strip()
    for finding in exchange.findings:
        yield clean(f"  ! {finding.severity}: {finding.message} ({finding.code})")
    if words := latency_words(exchange.fields):
        yield f"  latency: {words}"
    if (session := session_words(exchange)) is not None:
        yield clean(f"  fetches by {session or 'an empty session'}")
    if exchange.tls is not None and exchange.row.kind == "tls":
        yield from (clean(f"  {field.name}: {field.value}") for field in handshake_fields(exchange.tls))
    for name, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None:
            yield from of_message(exchange.row.kind if exchange.is_stored else name, message)
    yield ""


def _message(name: str, message: ExchangeMessage) -> Iterator[str]:
    yield f"  {name}, {counted(message.size, 'byte')}"
    source = message.tree.source
    waiting = [(node, "    ") for node in reversed(message.tree.children)]
    while waiting:
        node, indent = waiting.pop()
        start = node.start
        place = f"{start}+{node.end - start}" if node.source == source else f"s{node.source}:{start}+{node.end - start}"
        yield clean(f"{indent}{_words(node)}  [{place} {node.type}]")
        if node.advice:
            yield clean(f"{indent}→ {node.advice}")
        for finding in node.findings:
            yield clean(f"{indent}! {finding.severity}: {finding.message} ({finding.code})")
        if node.children:
            indent += "  "
            waiting.extend((child, indent) for child in reversed(node.children))


def _words(node: Node) -> str:
    """The name of a node, its value, and what that means."""
    value, meaning = shown(node), node.note
    if not meaning:
        return f"{node.name}: {value}" if value else node.name
    if node.is_text:
        value, meaning = meaning, value
    return f"{node.name}: {value} ({meaning})" if value else f"{node.name}  {meaning}"


def shown(node: Node) -> str:
    """Return the value of a leaf in one line."""
    value = node.value
    if type(value) is int:  # as most are
        return str(value)
    if value is None:
        return "" if node.children else "null"
    if isinstance(value, bytes):
        words = value[: LONGEST // 2].hex()
        return f"{words}… ({counted(len(value), 'byte')})" if len(value) > LONGEST // 2 else words or '""'
    if isinstance(value, str):
        return f'"{value[:LONGEST]}…" ({len(value):,} characters)' if len(value) > LONGEST else f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
