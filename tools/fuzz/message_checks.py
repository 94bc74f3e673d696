"""What holds of every message: it is read, traced and printed, every byte is in its tree, and the fast way and the
careful way agree."""

from typing import Any, Final

import orjson

from dissector.cli.render.trees import shown
from dissector.core.expansion import RUN
from dissector.core.text import HOSTILE, clean
from dissector.exchange.decoding_findings import error_response
from dissector.exchange.info_column import info
from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow
from dissector.exchange.to_json import json_line
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message import Traced
from dissector.protocol.records.to_json import records_object
from dissector.protocol.tree import UNPARSED, Node
from tests.protocol.trees import assert_tiled, same, values_of
from tools.fuzz.case import Case

RECORDS_NAMES: Final = frozenset(path.rpartition(".")[2] for path in RECORDS_FIELDS.values())
UNREAD: Final = frozenset(("bad-record", "bad-compression"))
OVER_LIMIT: Final = "over-limit"
"""Of a tree, which may have fewer nodes than JSON may have values."""


def check_frame(case: Case) -> None:
    """Check a frame that stands alone."""
    whole = len(case.data) if case.end is None else case.end
    size = len(case.data)
    message = ExchangeMessage.of_frame(0, size, case.data, whole, case.shape, case.context, show_secrets=False)
    check_message(message)
    words = info(message, None, error_response(case.key, message), {})
    kind = "sasl" if case.side == "token" else "exchange"
    row = ExchangeRow(1, kind, 0, 1, "a:1", "b:2", "fuzz", case.version, 7, None, size, *(None,) * 7, words, None)
    request, response = (None, message) if case.side == "response" else (message, None)
    check_line(Exchange(row, case.key, request, response))


def check_message(message: ExchangeMessage) -> None:
    """Its tree tiles it, holds what was read, and can be shown."""
    assert_tiled(Traced(message.tree, message.sources, message.findings))
    for node in message.tree.walk():
        assert not HOSTILE.search(clean(f"{node.name} {shown(node)} {node.note}"))
    body = message.tree.find("body")
    shape = message.layout
    if shape.body is None or not plan(shape.body, shape.body_version).fields:
        return
    malformed = any(finding.code == "malformed" for finding in message.tree.findings)
    if shape.masked_from is None:  # else reading ends before what does not fit, or what is too much
        assert malformed != bool(message.body), "reader and tracer do not fail on the same bytes"
    if malformed or not message.body:
        _whole_fields(message)
    if body is None or not message.body:
        return
    assert same(values_of(body), message.body), "reader and tracer found other values"
    if not shape.body.startswith("Envelope"):  # whose trees have the records of what is inside, too
        _records(message.body, [node for node in body.walk() if node.type.endswith("RECORDS") and node.schema])


def _whole_fields(message: ExchangeMessage) -> None:
    """Of a body that can't be read to its end, fields and rest divide the bytes where the tree does."""
    shown = message.data[: min(message.whole, message.layout.masked_from or message.whole)]
    assert shown.endswith(message.partial_bytes + message.rest)
    starts = [child.start for child in message.tree.children if child.type == UNPARSED]
    if message.header and message.rest:
        assert starts[0] == len(shown) - len(message.rest), "the tree has another rest"
    assert bool(message.known_body) <= bool(message.partial_bytes)


def _records(body: dict[str, object], fields: list[Node]) -> None:
    """The batches that can be read are those that can be traced."""
    found = [struct.get(name) for struct in structs(body) for name in RECORDS_NAMES]
    raws = [raw for raw in found if isinstance(raw, bytes) and raw]
    fields = [node for node in fields if node.children]
    assert sorted(map(len, raws)) == sorted(node.end - node.children[0].end for node in fields)
    over = any(finding.code == OVER_LIMIT for node in fields for each in node.walk() for finding in each.findings)
    RUN.begin()  # the tree may have used up what the values may expand, too
    for node in fields if len(raws) == 1 and not over else ():
        batches = [child for child in node.children if child.type in ("RECORD_BATCH", "MESSAGE")]
        for child, value in zip(batches, records_object(raws[0])["batches"], strict=True):
            codes = {finding.code for each in child.walk() for finding in each.findings}
            if child.type == "RECORD_BATCH":
                assert bool(codes & UNREAD) == ("error" in value), f"{child.path}: {codes}, {value.get('error')}"


def check_line(exchange: Exchange) -> None:
    """Its JSON is one line that holds nothing hostile."""
    line = json_line(exchange)
    value: dict[str, Any] = orjson.loads(line)
    assert value["kind"] == exchange.row.kind
    assert line.count(b"\n") == 1
    assert not HOSTILE.search(line[:-1].decode())
