"""How exchanges and captures look in a notebook: small tables. All text from the wire is escaped."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Final

from dissector.core.text import clean, duration
from dissector.exchange.model import ExchangeMessage

if TYPE_CHECKING:
    from dissector.api.capture import Capture
    from dissector.api.exchange import Exchange

MOST_ROWS: Final = 20
MOST_FIELDS: Final = 200
_LEFT: Final = ' style="text-align:left"'


def capture_html(capture: "Capture") -> str:
    """Return a table of the first exchanges."""
    shown = list(islice(capture.exchanges(), MOST_ROWS))
    more = len(capture) - len(shown)
    return exchanges_html(shown) + (f"<p>and {more:,} more</p>" if more else "")


def exchanges_html(exchanges: Iterable["Exchange"]) -> str:
    """Return a table of exchanges, a row for each."""
    heads = ("number", "client", "server", "API", "latency", "info")
    rows = (
        (
            f"{each.number:,}", each.client, each.server,
            each.kind if each.api_version is None else f"{each.api} v{each.api_version}",
            "" if each.latency_ns is None else duration(each.latency_ns), each.info,
        )
        for each in exchanges
    )  # fmt: skip
    return _table(heads, rows)


def exchange_html(exchange: "Exchange") -> str:
    """Return the fields of both messages, each with its offset and value."""
    parts = [exchanges_html([exchange])]
    for name, message in (("request", exchange.request), ("response", exchange.response)):
        if message is not None:
            parts.append(f"<details><summary>{name}, {message.size:,} bytes</summary>{_fields(message)}</details>")
    if exchange.findings:
        found = ((each.severity.value, each.code, each.message) for each in exchange.findings)
        parts.append(_table(("severity", "code", "finding"), found))
    return "".join(parts)


def _fields(message: ExchangeMessage) -> str:
    nodes = islice(message.tree.walk(), MOST_FIELDS)
    rows = ((f"{node.start:,}", node.path, "" if node.children else str(node.value)) for node in nodes)
    return _table(("offset", "field", "value"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(_parts(heads, rows))


def _parts(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "<table><thead><tr>"
    yield from (f"<th{_LEFT}>{escape(head)}</th>" for head in heads)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td{_LEFT}>{escape(clean(cell))}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"
