"""`show --format tree`: every field with name, value, offset, size and type, indented, as in Wireshark's details."""

from collections.abc import Iterator
from typing import Final

from dissector.cli.render.lines import row_line
from dissector.core.text import clean, counted
from dissector.exchange.info_column import fetch_session_words
from dissector.exchange.listing import latency_words
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.tls_words import handshake_fields
from dissector.protocol.tree import Node

LONGEST: Final = 96
"""Characters of a value that are printed; longer ones are cut, with their length."""


def tree_lines(exchange: Exchange, start_ns: int) -> Iterator[str]:
    """Yield the lines of an exchange: its row, its findings, and the trees of its messages."""
    yield row_line(exchange.row, start_ns).strip()
    for finding in exchange.findings:
        yield clean(f"  ! {finding.severity}: {finding.message} ({finding.code})")
    if words := latency_words(exchange.fields):
        yield f"  latency: {words}"
    if exchange.fetched is not None:
        yield clean(f"  fetches by {fetch_session_words(exchange.fetched) or 'an empty session'}")
    if exchange.tls is not None and exchange.row.kind == "tls":
        yield from (clean(f"  {field.name}: {field.value}") for field in handshake_fields(exchange.tls))
    for name, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None:
            yield from _message(exchange.row.kind if exchange.is_stored else name, message)
    yield ""


def _message(name: str, message: ExchangeMessage) -> Iterator[str]:
    yield f"  {name}, {counted(message.size, 'byte')}"
    source = message.tree.source
    waiting = [(node, "    ") for node in reversed(message.tree.children)]
    while waiting:
        node, indent = waiting.pop()
        yield clean(f"{indent}{_words(node)}  [{_place(node, source)} {node.type}]")
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
    if meaning and node.is_text:
        value, meaning = meaning, value
    if not meaning:
        return f"{node.name}: {value}" if value else node.name
    return f"{node.name}: {value} ({meaning})" if value else f"{node.name}  {meaning}"


def _place(node: Node, source: int) -> str:
    if node.source == source:
        return f"{node.start}+{node.size}"
    return f"s{node.source}:{node.start}+{node.size}"


def shown(node: Node) -> str:
    """Return the value of a leaf in one line."""
    value = node.value
    if value is None:
        return "" if node.children else "null"
    if isinstance(value, bytes):
        words = value[: LONGEST // 2].hex()
        return f"{words}… ({counted(len(value), 'byte')})" if len(value) > LONGEST // 2 else words or '""'
    if isinstance(value, str):
        return f'"{value[:LONGEST]}…" ({len(value):,} characters)' if len(value) > LONGEST else f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
