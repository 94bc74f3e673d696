"""Both sides of a connection as decoded text, in the order of time: Wireshark's "follow stream".

Messages are decoded when somebody reads that far, so a connection of any length opens at once. Secrets are masked as
everywhere. Every line is clean.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.core.text import clean, counted, seconds
from dissector.exchange.model import Exchange
from dissector.protocol.tree import Node
from tui.labels import value_words

LONGEST_VALUE: Final = 200
"""Characters of a value."""
MOST_FIELDS: Final = 2_000
"""Fields of a message that are lines; the others are counted."""
LONGEST_LINE: Final = 160
"""Characters of an element of an array that is one line."""
_LEFT_OUT: Final = ("(tagged fields)", "(value)")
"""Leaves that say nothing but how many fields follow, or again what the field has."""
LARGEST: Final = 1 << 20
"""Bytes of a message whose fields are lines."""
FIRST_ELEMENTS: Final = 3
"""Elements of a long array that are lines, where the others are folded."""
LEAST_FOLDED: Final = 4
"""Fewer lines are not folded."""
SIDES: Final = ("request", "response")


class TextLine(NamedTuple):
    """A line of a message, and the field that it shows."""

    text: str
    number: int
    """The row of the message, from 0."""
    side: str
    path: str = ""
    is_head: bool = False


def folded(lines: Sequence[TextLine]) -> Iterator[tuple[int, TextLine, bool]]:
    """Yield lines with their places; of many elements of an array, each on one line, the first ones and a line that
    says how many more there are, with the place of the one before it and True."""
    at = 0
    for array, run in groupby(lines, key=_array):
        of_run = list(run)
        hidden = len(of_run) - FIRST_ELEMENTS if array and len(of_run) > FIRST_ELEMENTS + LEAST_FOLDED else 0
        last = len(of_run) - hidden
        for place, line in enumerate(of_run[:last], at):
            yield place, line, False
        if hidden:
            words = of_run[last].text
            indent = words[: len(words) - len(words.lstrip())]
            yield at + last - 1, of_run[last]._replace(text=f"{indent}… {hidden:,} more: Enter or m shows them"), True
        at += len(of_run)


def _array(line: TextLine) -> tuple[int, str, str] | None:
    """Return the array of which a line is an element; None for other lines."""
    path, bracket, _ = line.path.rpartition("[")
    return (line.number, line.side, path) if bracket and line.path.endswith("]") else None


class ConnectionText:
    """The messages of a connection, `len` of them, each as lines."""

    def __init__(self, capture: Capture, connection: int) -> None:
        self._capture = capture
        self._rows, self._is_request = _messages(capture, connection)

    def __len__(self) -> int:
        return len(self._rows)

    def index_of(self, number: int) -> int:
        """The first message of a row, or of one after it."""
        at = np.flatnonzero(self._rows >= number)
        return int(at[0]) if len(at) else 0

    def message(self, at: int) -> Iterator[TextLine]:
        """The lines of a message, from 0."""
        number, side = int(self._rows[at]), SIDES[0 if self._is_request[at] else 1]
        [exchange] = self._capture.at(range(number, number + 1))
        yield from _lines(exchange, number, side, self._capture.start_ns)

    def text(self) -> Iterator[str]:
        """All lines of all messages, for a file."""
        for at in range(len(self)):
            for line in self.message(at):
                yield line.text


def _messages(capture: Capture, connection: int) -> tuple[Int64, Bool]:
    """The messages of a connection, in the order of time: their rows, and which are the client's."""
    rows = np.arange(len(capture))
    columns = capture.index.numbers(rows)
    found = np.flatnonzero(columns.connection == connection)
    sent, came = columns.request_size[found] >= 0, columns.response_size[found] >= 0
    neither = ~sent & ~came  # such as a connection that is not Kafka's
    numbers = np.concatenate([found[sent], found[came], found[neither]])
    time_ns = np.concatenate([
        columns.request_time_ns[found[sent]], columns.response_time_ns[found[came]], np.zeros(neither.sum(), np.int64)
    ])  # fmt: skip
    is_request = np.zeros(len(numbers), np.bool_)
    is_request[: sent.sum()] = True
    order = np.lexsort((~is_request, numbers, time_ns))
    return numbers[order], is_request[order]


def _lines(exchange: Exchange, number: int, side: str, start_ns: int) -> Iterator[TextLine]:
    row = exchange.row
    message = exchange.request if side == "request" else exchange.response
    if message is None:
        yield TextLine(clean(f"{row.number}  {row.api}: {row.info}"), number, side, is_head=True)
        return
    arrow = "→" if side == "request" else "←"
    version = "" if row.version is None else f" v{row.version}"
    client = f" of {row.client_id}" if side == "request" and row.client_id else ""
    words = f"{arrow} {row.number}  {seconds(message.time_ns - start_ns)}  {row.api}{version} {side}{client}"
    yield TextLine(clean(f"{words}, {counted(message.size, 'byte')}"), number, side, is_head=True)
    if len(message.data) > LARGEST:
        yield TextLine("  too large to show here: Enter opens it", number, side)
        return
    count = 0
    for depth, node in _below(message.tree):
        count += 1
        if count <= MOST_FIELDS:
            yield TextLine(_field(node, depth), number, side, node.path)
    if count > MOST_FIELDS:
        yield TextLine(f"  … {counted(count - MOST_FIELDS, 'more field')}: Enter opens them", number, side)
    for finding in exchange.findings:
        if finding.path.partition(".")[0] in (side, ""):
            yield TextLine(clean(f"  ! {finding.severity}: {finding.message}"), number, side, is_head=False)


def _below(top: Node) -> Iterator[tuple[int, Node]]:
    """All fields of the body, each with its depth; the first line says what the header has."""
    stack = [(1, child) for child in reversed(top.children) if child.name not in ("size", "header")]
    while stack:
        depth, node = stack.pop()
        if _is_left_out(node):
            continue
        yield depth, node
        if _on_one_line(node) is None:
            stack += [(depth + 1, child) for child in reversed(node.children)]


def _is_left_out(node: Node) -> bool:
    return node.is_encoding or (node.name in _LEFT_OUT and not node.children)


def _on_one_line(node: Node) -> str | None:
    """The fields of an element of an array, if all are leaves and fit on one line."""
    if not node.name.startswith("[") or not node.children or any(child.children for child in node.children):
        return None
    words = ", ".join(_leaf(child) for child in node.children if not _is_left_out(child))
    return words if len(words) <= LONGEST_LINE else None


def _field(node: Node, depth: int) -> str:
    words = _on_one_line(node)
    return "  " * depth + (_leaf(node) if words is None else f"{clean(node.name)} {words}")


def _leaf(node: Node) -> str:
    value, meaning = value_words(node, LONGEST_VALUE)
    note = (f" ({meaning})" if value else f" {meaning}") if meaning else ""
    return f"{clean(node.name)}{': ' + value if value else ''}{note}"
