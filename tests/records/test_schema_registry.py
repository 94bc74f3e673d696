"""A schema registry is asked for the schemas that values name: once, for a bounded time, and no secret goes astray."""

import json
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from time import sleep

import pytest

from dissector.core.limits import DEFAULT
from dissector.records.values.opened import UnreadableError
from dissector.records.values.schema_reference import ID, SchemaKey
from dissector.records.values.schema_registry import SchemaRegistry
from dissector.records.values.schemas import (
    opener_with,
)
from tests.cases import cases
from tests.records.given import PROTO, framed


def served(answers: dict[str, bytes | int | str]) -> Callable[..., object]:
    """A registry on loopback: contents, statuses and addresses to go on to by path."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            answer = answers.get(self.path, 404)
            self.send_response(answer if isinstance(answer, int) else 302 if isinstance(answer, str) else 200)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server, asked


def test_a_registry_is_asked_once_for_each_id() -> None:
    line = {"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "l", "type": "shop.Line"}]}
    answers = {
        "/schemas/ids/7": json.dumps({
            "schema": json.dumps(order), "references": [{"name": "shop.Line", "subject": "li/ne", "version": 2}],
        }).encode(),
        "/subjects/li%2Fne/versions/2": json.dumps({"schema": json.dumps(line)}).encode(),
        "/schemas/ids/8": json.dumps({"schema": PROTO.decode(), "schemaType": "PROTOBUF"}).encode(),
        "/schemas/ids/9": b"<html>", "/schemas/ids/10": 500,
        "/apis/registry/v2/ids/globalIds/5": json.dumps(line).encode(),
    }  # fmt: skip
    server, asked = served(answers)
    try:
        found = opener_with(f"http://user:pass%20word@127.0.0.1:{server.server_port}/")
        for _ in range(2):
            assert found.open(framed(7, b"\x02")).value == {"l": {"n": 1}}
            assert found.open(framed(8, b"\x00\x08\x07")).value == {"id": 7}
            assert found.open(b"\x00" + struct.pack(">Q", 5) + b"\x02").value == {"n": 1}
            messages = [found.open(framed(n, b"")).problem.message for n in (9, 10, 11)]
        assert [path for path, _ in asked] == [
            "/schemas/ids/7", "/subjects/li%2Fne/versions/2", "/schemas/ids/8", "/apis/registry/v2/ids/globalIds/5",
            "/schemas/ids/9", "/schemas/ids/10", "/schemas/ids/11",
        ]  # fmt: skip
        assert {authorization for _, authorization in asked} == {"Basic dXNlcjpwYXNzIHdvcmQ="}
        assert "not a JSON object" in messages[0]
        assert "answers 500" in messages[1]
        assert "not among" in messages[2]
        assert "pass" not in "".join(messages)
    finally:
        server.shutdown()
        server.server_close()


def test_a_password_is_not_sent_to_where_a_registry_redirects() -> None:
    schema = json.dumps({"schema": json.dumps({"type": "record", "name": "N", "fields": []})}).encode()
    other, asked_there = served({"/elsewhere": schema})
    server, asked = served({"/schemas/ids/7": f"http://127.0.0.1:{other.server_port}/elsewhere"})
    try:
        found = opener_with(f"http://user:secret@127.0.0.1:{server.server_port}").open(framed(7, b""))
        assert found.value == {}
        assert asked[0][1].startswith("Basic ")
        assert asked_there == [("/elsewhere", None)]
        for login, is_followed in (("user:secret@", False), ("", True)):
            there = served({"/schemas/ids/7": f"http://localhost:{other.server_port}/elsewhere"})[0]
            found = opener_with(f"http://{login}127.0.0.1:{there.server_port}").open(framed(7, b""))
            assert (found.problem is None) == is_followed, found.problem
            there.shutdown()
            there.server_close()
        assert len(asked_there) == 2
    finally:
        for each in (server, other):
            each.shutdown()
            each.server_close()


@pytest.mark.long
@cases("sent", [
    [b"HTTP/1.0 200 OK\r\n", *[b"X: y\r\n"] * 80], [b"HTTP/1.1 100 Continue\r\n\r\n"] * 80,
    [b"HTTP/1.0 200 OK\r\n\r\n", *[b" "] * 80], [b"H"] * 80, [],
])  # fmt: skip
def test_a_registry_that_drips_is_given_up(sent: list[bytes]) -> None:
    """Bytes come before each wait ends, and for longer than a schema may take."""
    ended = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                for part in sent:
                    connection.sendall(part)
                    if ended.wait(0.05):
                        return
                ended.wait(20)

        Thread(target=drip, daemon=True).start()
        registry = SchemaRegistry(f"http://127.0.0.1:{server.getsockname()[1]}", replace(DEFAULT, registry_seconds=0.3))
        with pytest.raises(UnreadableError, match="timed out"):
            registry.text(SchemaKey(ID, "7"))
        assert not ended.is_set()
        ended.set()


def test_a_schema_and_all_that_it_refers_to_have_one_time_limit() -> None:
    references = [{"name": f"n{at}", "subject": f"s{at}", "version": 1} for at in range(60)]
    answer = json.dumps({"schema": '"int"', "references": references}).encode()

    class Slow(dict[str, object]):
        def get(self, path: str, _otherwise: object = None) -> object:
            sleep(0.05)
            return answer

    server, asked = served(Slow())
    try:
        registry = SchemaRegistry(f"http://127.0.0.1:{server.server_port}", replace(DEFAULT, registry_seconds=0.3))
        with pytest.raises(UnreadableError, match="timed out"):
            registry.text(SchemaKey(ID, "7"))
        assert 1 < len(asked) < 12
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.long
@cases("first", [b"", b"HTTP/1.0 500 no\r\n"])
def test_a_registry_that_is_late_with_a_part_of_each_schema_is_asked_three_times(first: bytes) -> None:
    """The schema itself comes at once, and what it refers to does not, or a status whose headers do not end."""
    schema = json.dumps({"schema": '"int"', "references": [{"name": "n", "subject": "s", "version": 1}]}).encode()
    ended = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while not ended.is_set():
                    connection = server.accept()[0]
                    if b"/schemas/" in connection.recv(1000) and not first:
                        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + schema)
                        connection.close()
                    else:
                        connection.sendall(first)
                        held.append(connection)

        held: list[socket.socket] = []
        Thread(target=answer, daemon=True).start()
        registry = SchemaRegistry(f"http://127.0.0.1:{server.getsockname()[1]}", replace(DEFAULT, registry_seconds=0.2))
        words = []
        for number in range(4):
            with pytest.raises(UnreadableError) as raised:
                registry.text(SchemaKey(ID, str(number)))
            words.append(str(raised.value))
        ended.set()
    assert ["timed out" in each for each in words] == [True, True, True, False]
    assert "no further requests" in words[3]


def test_failures_count_only_in_a_row() -> None:
    """A registry that answers in between, if only that it has no such schema, is asked again."""
    server, asked = served({"/schemas/ids/1": 500, "/schemas/ids/2": b"{}"})
    registry = SchemaRegistry(f"http://127.0.0.1:{server.server_port}")
    try:
        for between in ("1", "2", "3"):
            registry._failures = 2
            with suppress(UnreadableError):
                registry.text(SchemaKey(ID, between))
            assert registry._failures == 0, between
        assert len(asked) == 3
    finally:
        server.shutdown()
        server.server_close()


@cases("references", [7, "ab", {"a": 1}, [1, None, "x", []], [{"name": 1}], [{"name": "n", "subject": ["s"]}], True])
def test_references_that_are_none_are_left_out(references: object) -> None:
    answer = json.dumps({"schema": '"int"', "references": references}).encode()
    server, asked = served({"/schemas/ids/7": answer})
    try:
        assert opener_with(f"http://127.0.0.1:{server.server_port}").open(framed(7, b"\x0e")).value == 7
        assert len(asked) == 1
    finally:
        server.shutdown()
        server.server_close()


def test_a_registry_redirects_to_nothing_but_http() -> None:
    server, _ = served({"/schemas/ids/7": "ftp://127.0.0.1/x", "/schemas/ids/8": "file:///etc/passwd"})
    try:
        found = opener_with(f"http://127.0.0.1:{server.server_port}")
        assert "redirects to ftp://127.0.0.1" in found.open(framed(7, b"")).problem.message
        assert "is not allowed" in found.open(framed(8, b"")).problem.message
    finally:
        server.shutdown()
        server.server_close()


def test_a_registry_that_is_not_there_is_asked_three_times() -> None:
    found = opener_with("http://127.0.0.1:1")
    messages = [found.open(framed(n, b"")).problem.message for n in range(1, 6)]
    assert "127.0.0.1:1" in messages[0]
    assert "no further requests" in messages[3]
