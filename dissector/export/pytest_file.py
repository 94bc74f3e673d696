"""Exports exchanges as a Python test: their bytes, a server that replays the responses, and assertions on the fields.

The file needs only pytest and kdissect. All text from the wire is hex or an escaped ASCII literal, which can't end a
string or be code. Rows without a complete exchange (an orphan, a gap, a token) are omitted, and counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.text import counted
from dissector.exchange.model import Exchange, ExchangeMessage

_SCALARS: Final = (int, str, bytes, type(None))
_BYTES_PER_LINE: Final = 50
"""Bytes of hex per line."""
_MAX_VALUE: Final = 200
"""Maximum characters of an asserted value; longer values are only in the bytes."""

_HEAD: Final = '''"""Recorded exchanges as a test, made by `kdissect export`. It needs pytest and kafka-dissector.

`broker` answers clients from these exchanges, as `kdissect serve` does from a capture: connect one to
`broker.bootstrap`. The addresses of brokers in responses are its own: a real client stays with it. `broker.requests`
has the frames that came, `broker.unanswered` what was not recorded.
"""

import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import dissector
import pytest


class Recorded(NamedTuple):
    """An exchange: its frames as hex, size prefix included, and the scalar fields of its bodies."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request: str
    response: str | None
    request_fields: dict[str, Any]
    response_fields: dict[str, Any]


'''

_TAIL: Final = '''

def served() -> dissector.Served:
    frames = [(bytes.fromhex(each.request), None if each.response is None else bytes.fromhex(each.response))
              for each in EXCHANGES]
    return dissector.serve(frames)


@pytest.fixture
def broker() -> Iterator[dissector.Served]:
    with served() as found:
        yield found


@pytest.mark.parametrize("recorded", EXCHANGES, ids=lambda each: str(each.number))
def test_recorded_exchange(recorded: Recorded) -> None:
    request = dissector.decode_request(bytes.fromhex(recorded.request), show_secrets=True)
    assert request.header["request_api_key"] == recorded.api_key
    assert request.header["request_api_version"] == recorded.api_version
    assert request.header["correlation_id"] == recorded.correlation_id
    assert request.header.get("client_id") == recorded.client_id
    assert {name: request.body[name] for name in recorded.request_fields} == recorded.request_fields
    if recorded.response is not None:
        response = dissector.decode_response(
            bytes.fromhex(recorded.response),
            api_key=recorded.api_key,
            api_version=recorded.api_version,
            show_secrets=True,
        )
        assert response.header["correlation_id"] == recorded.correlation_id
        assert {name: response.body[name] for name in recorded.response_fields} == recorded.response_fields


def test_broker_gives_the_recorded_responses(broker: dissector.Served) -> None:
    with socket.create_connection(broker.address, timeout=10) as client, client.makefile("rb") as stream:
        for each in EXCHANGES:
            client.sendall(bytes.fromhex(each.request))
            if each.response is not None:
                prefix = stream.read(4)
                frame = prefix + stream.read(int.from_bytes(prefix, "big"))
                assert content(each, frame) == content(each, bytes.fromhex(each.response))
        client.shutdown(socket.SHUT_WR)
        assert stream.read() == b""  # the broker has read everything and sends nothing else
    assert [request.hex() for request in broker.requests] == [each.request for each in EXCHANGES]


def content(recorded: Recorded, frame: bytes) -> Any:
    """What a response has, without the addresses of brokers: the server's own stand in their place."""
    api = {"api_key": recorded.api_key, "api_version": recorded.api_version}
    message = dissector.decode_response(frame, **api, show_secrets=True)
    return message.header, without_addresses(message.body) or frame.hex()


def without_addresses(value: Any) -> Any:
    if isinstance(value, list):
        return [without_addresses(each) for each in value]
    if isinstance(value, dict):
        return {name: without_addresses(each) for name, each in value.items() if name not in ("host", "port")}
    return value
'''


def pytest_file(capture: Capture, rows: Sequence[int]) -> Iterator[str]:
    """Yield the file's text. Secrets are masked, unless the capture shows them."""
    yield _HEAD
    yield "EXCHANGES = [\n"
    omitted = 0
    for exchange in capture.at(np.asarray(rows, np.int64)):
        if _is_complete(exchange):
            yield from _recorded(exchange)
        else:
            omitted += 1
    yield "]\n"
    if omitted:
        yield f"# {counted(omitted, 'row')} left out: orphans, tokens, gaps, or messages not captured whole.\n"
    yield _TAIL


def _is_complete(exchange: Exchange) -> bool:
    if exchange.request is None or exchange.api_key is None or exchange.is_stored or exchange.fields.kind != "exchange":
        return False
    messages = (exchange.request, exchange.response)
    return all(each is None or each.whole == each.size for each in messages) and bool(exchange.request.header)


def _recorded(exchange: Exchange) -> Iterator[str]:
    assert exchange.request is not None
    header = exchange.request.header
    yield "    Recorded(\n"
    yield f"        number={exchange.fields.number},\n"
    yield f"        api_key={exchange.api_key},\n"
    yield f"        api_version={header['request_api_version']},\n"
    yield f"        correlation_id={header['correlation_id']},\n"
    yield f"        client_id={header.get('client_id')!a},\n"
    for name, message in (("request", exchange.request), ("response", exchange.response)):
        yield f"        {name}={_hex(message)},\n"
    for name, message in (("request_fields", exchange.request), ("response_fields", exchange.response)):
        yield f"        {name}={_scalar_fields(message.body if message is not None else {})},\n"
    yield "    ),\n"


def _hex(message: ExchangeMessage | None) -> str:
    """Return a frame as a literal of several lines."""
    if message is None:
        return "None"
    lines = (message.data[at : at + _BYTES_PER_LINE].hex() for at in range(0, len(message.data), _BYTES_PER_LINE))
    return "(\n" + "".join(f'            "{line}"\n' for line in lines) + "        )"


def _scalar_fields(body: Mapping[str, object]) -> str:
    """Return the scalar fields of a body as an ASCII literal."""
    fields = (f"{name!r}: {value!a}" for name, value in body.items()
              if isinstance(value, _SCALARS) and len(ascii(value)) <= _MAX_VALUE)  # fmt: skip
    return "{" + ", ".join(fields) + "}"
