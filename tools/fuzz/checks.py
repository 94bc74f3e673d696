"""What holds of every input, however damaged: it is read, traced and printed, every byte is in the tree, and the fast
way and the careful way agree. `check` raises where it does not."""

import tempfile
from pathlib import Path
from typing import Any

import orjson

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.render.rows import row_line
from dissector.cli.render.trees import shown, tree_lines
from dissector.core.text import HOSTILE, clean
from dissector.exchange.info_column import info
from dissector.exchange.message_rules import MESSAGE_RULES
from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow
from dissector.exchange.to_json import json_line
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message import Traced
from dissector.protocol.records.to_json import records_object
from dissector.protocol.tree import Node
from tests.protocol.trees import assert_tiled, same, values_of
from tools.fuzz.case import Case
from tools.fuzz.jars import check_jar
from tools.fuzz.leaks import leak

RECORDS_NAMES = frozenset(path.rpartition(".")[2] for path in RECORDS_FIELDS.values())
UNREAD = frozenset(("bad-record", "bad-compression", "over-limit"))


def check(case: Case) -> None:
    """All of it, for one case."""
    if case.side in ("capture", "captures"):
        _captures(case.files, [bytes.fromhex(each) for each in case.secrets or ()])
    elif case.side == "jar":
        check_jar(case.data)
    else:
        _frame(case)


def _frame(case: Case) -> None:
    whole = len(case.data) if case.end is None else case.end
    size = len(case.data)
    message = ExchangeMessage.of_frame(0, size, case.data, whole, case.shape, case.context, show_secrets=False)
    _message(message)
    words = info(message, None, MESSAGE_RULES.find(case.key, None, message), {})
    kind = "sasl" if case.side == "token" else "exchange"
    row = ExchangeRow(1, kind, 0, 1, "a:1", "b:2", "fuzz", case.version, 7, None, size, None, None, words, None)
    request, response = (None, message) if case.side == "response" else (message, None)
    _line(Exchange(row, case.key, request, response))


def _message(message: ExchangeMessage) -> None:
    """Its tree tiles it, holds what was read, and can be shown."""
    assert_tiled(Traced(message.tree, message.sources, message.findings))
    for node in message.tree.walk():
        assert not HOSTILE.search(clean(f"{node.name} {shown(node)} {node.note}"))
    body = message.tree.find("body")
    shape = message.layout
    if shape.body is None or not plan(shape.body, shape.body_version).fields:
        return
    malformed = any(finding.code == "malformed" for finding in message.tree.findings)
    assert malformed != bool(message.body), "reader and tracer do not fail on the same bytes"
    if body is None or not message.body:
        return
    assert same(values_of(body), message.body), "reader and tracer found other values"
    if not shape.body.startswith("Envelope"):  # whose trees have the records of what is inside, too
        _records(message.body, [node for node in body.walk() if node.type.endswith("RECORDS") and node.schema])


def _records(body: dict[str, object], fields: list[Node]) -> None:
    """The batches that can be read are those that can be traced."""
    found = [struct.get(name) for struct in structs(body) for name in RECORDS_NAMES]
    raws = [raw for raw in found if isinstance(raw, bytes) and raw]
    fields = [node for node in fields if node.children]
    assert sorted(map(len, raws)) == sorted(node.end - node.children[0].end for node in fields)
    for node in fields if len(raws) == 1 else ():
        batches = [child for child in node.children if child.type in ("RECORD_BATCH", "MESSAGE")]
        for child, value in zip(batches, records_object(raws[0])["batches"], strict=True):
            codes = {finding.code for each in child.walk() for finding in each.findings}
            if child.type == "RECORD_BATCH":
                assert bool(codes & UNREAD) == ("error" in value), f"{child.path}: {codes}, {value.get('error')}"


def _line(exchange: Exchange) -> None:
    line = json_line(exchange)
    value: dict[str, Any] = orjson.loads(line)
    assert value["kind"] == exchange.row.kind
    assert line.count(b"\n") == 1
    assert not HOSTILE.search(line[:-1].decode())


def _captures(files: list[bytes], secrets: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        words = folder
        try:
            with Capture([str(path) for path in paths]) as capture:
                _rows(capture)
                shown = leak(capture, secrets)
                assert not shown, f"a secret: {shown.split()[0]}"
        except CaptureError as error:
            words = str(error)
        assert folder in words
        assert "\n" not in words


def _rows(capture: Capture) -> None:
    packets = 0
    for progress in capture.read():
        packets = progress.packets
    assert packets == capture.packets
    assert all("\n" not in problem.message for problem in capture.problems)
    for number in range(len(capture)):
        exchange = capture.exchange(number)
        assert exchange.row.number == number + 1
        assert not HOSTILE.search(row_line(exchange.row, capture.start_ns))
        assert not any(HOSTILE.search(line) for line in tree_lines(exchange, capture.start_ns))
        _line(exchange)
        for message in (exchange.request, exchange.response):
            if message is not None:
                _message(message)
