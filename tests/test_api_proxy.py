"""A proxy from Python: exchanges come as they happen, without rights."""

import asyncio
import itertools
import re
import socket
from pathlib import Path

import pytest

import dissector
from tests.capture.live.loopback import broker, talk
from tests.probe.servers import serving
from tests.proxy_server.test_listening_tls import answering, signed


def port_of(traffic: dissector.Live) -> int:
    return int(traffic.bootstrap.rpartition(":")[2])


@pytest.mark.long
def test_exchanges_come_as_they_happen() -> None:
    with broker() as port, dissector.proxy(f"127.0.0.1:{port}", listen=0, filter="correlation_id > 0") as traffic:
        talk(port_of(traffic), 3)
        found = list(itertools.islice(traffic, 2))
    assert [each.correlation_id for each in found] == [1, 2]
    assert {each.server for each in found} == {f"127.0.0.1:{port}"}
    assert all(each.latency_ns is not None for each in found)


@pytest.mark.long
def test_a_loop_of_asyncio_goes_on_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"

    async def watch(address: str) -> list[int]:
        found = []
        async with dissector.proxy([address], listen=0, path=path, seconds=30) as traffic:
            client = asyncio.create_task(asyncio.to_thread(talk, port_of(traffic), 2))
            async for exchange in traffic:
                found.append(exchange.correlation_id)
                if len(found) == 2:
                    break
            await client
        return found

    with broker() as port:
        assert asyncio.run(watch(f"127.0.0.1:{port}")) == [0, 1]
    with dissector.open(path) as capture:
        assert [each.correlation_id for each in capture] == [0, 1]


@pytest.mark.long
def test_several_brokers_are_several_addresses() -> None:
    with (
        broker() as one,
        broker() as two,
        dissector.proxy([f"127.0.0.1:{one},127.0.0.1:{two}", f"127.0.0.1:{one}"], listen=0) as traffic,
    ):
        ports = [int(each.rpartition(":")[2]) for each in traffic.bootstrap.split(",")]
        assert len({*ports}) == 2
        for port in ports:
            talk(port, 1)
        assert {each.server for each in itertools.islice(traffic, 2)} == {f"127.0.0.1:{one}", f"127.0.0.1:{two}"}


@pytest.mark.long
def test_a_file_for_clients_asks_for_tls(tmp_path: Path) -> None:
    mine = signed(tmp_path, 5)
    with serving(answering) as address, dissector.proxy(address, listen=0, listen_cert=mine) as traffic:
        with socket.create_connection(("127.0.0.1", port_of(traffic)), 10) as client:
            client.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\0\0")
            assert client.recv(99)[:1] in (b"", b"\x15"), "a TLS alert"
        traffic.stop()
        assert list(traffic) == []
        [words] = traffic.messages()
        assert "speaks no TLS" in words


@pytest.mark.parametrize(
    ("brokers", "options", "words"),
    [
        ([], {}, "the broker's address is missing; example: broker.example:9092"),
        ("b:x", {}, "b:x: 'x' is not a port from 1 to 65535"),
        ("b", {"listen": "0.0.0.0:0"}, "--listen 0.0.0.0:0 needs --advertise HOST"),
        ("b", {"listen": 65_536}, "65536 is not a port from 1 to 65535"),
        ("b", {"listen": "[::1]"}, "[::1]: the port is missing"),
        ("b", {"listen": 0, "filter": "what what"}, "column 6: no operator after what; did you mean what == what"),
    ],
)
def test_what_is_no_setting_is_a_value_error(brokers: object, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        dissector.proxy(brokers, **options)


@pytest.mark.long
def test_a_port_that_is_taken_is_a_capture_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(dissector.CaptureError, match=rf"can't listen on 127\.0\.0\.1:{port}: address already"):
            dissector.proxy("b", listen=port)
