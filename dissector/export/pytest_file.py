"""Exports exchanges as a Python test: their bytes, a server that replays the responses, and assertions on the fields.

The file needs only pytest and kdissect. All text from the wire is hex or an escaped ASCII literal, which can't end a
string or be code. Rows without a complete exchange (an orphan, a gap, a token) are omitted, and counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dissector.capture_session import Capture
from dissector.core.text import counted
from dissector.exchange.model import Exchange, ExchangeMessage

_SCALARS: Final = (int, str, bytes, type(None))
_BYTES_PER_LINE: Final = 50
"""Bytes of hex per line."""
_MAX_VALUE: Final = 200
"""Maximum characters of an asserted value; longer values are only in the bytes."""

_HEAD: Final = '''"""Recorded exchanges as a test, made by `kdissect export`. It needs pytest and kafka-dissector.

`broker` is a server that replays the recorded responses: requests of an API and version get its recorded responses in
order, and then the last one again, each with the correlation id of the request. Connect a client to `broker.address`.
The addresses of brokers in Metadata, FindCoordinator and DescribeCluster are its own: a real client stays with it.
"""

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
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
NAMES_BROKERS = (3, 10, 60)
"""Metadata, FindCoordinator, DescribeCluster."""


class Replay:
    """A broker on loopback that replays the recorded responses."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        """The received frames, size prefix included."""
        self._responses: defaultdict[tuple[int, int], list[bytes | None]] = defaultdict(list)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        for each in EXCHANGES:
            self._responses[each.api_key, each.api_version].append(self.response(each))
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def response(self, recorded: Recorded) -> bytes | None:
        """The recorded response, with this broker's address in place of all brokers'."""
        if recorded.response is None or recorded.api_key not in NAMES_BROKERS:
            return None if recorded.response is None else bytes.fromhex(recorded.response)
        frame, api = bytes.fromhex(recorded.response), (recorded.api_key, recorded.api_version)
        message = dissector.decode_response(frame, api_key=api[0], api_version=api[1], show_secrets=True)
        self._move_brokers(message.body)
        try:
            return dissector.encode_response(*api, message.body, correlation_id=recorded.correlation_id)
        except dissector.EncodeError:  # it was recorded damaged
            return frame

    def _move_brokers(self, value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                self._move_brokers(each)
        elif isinstance(value, dict):
            if value.get("host") and "port" in value:
                value["host"], value["port"] = self.address
            for each in value.values():
                self._move_brokers(each)

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with suppress(ConnectionError), client, client.makefile("rb") as stream:  # clients close without a word
            while len(prefix := stream.read(4)) == 4:
                request = stream.read(int.from_bytes(prefix, "big"))
                self.requests.append(prefix + request)
                responses = self._responses[int.from_bytes(request[:2], "big"), int.from_bytes(request[2:4], "big")]
                if not responses:
                    return  # no recorded response: a broker, too, closes the connection on an unknown API
                response = responses.pop(0) if len(responses) > 1 else responses[0]
                if response is not None:
                    client.sendall(response[:4] + request[4:8] + response[8:])


@pytest.fixture
def broker() -> Iterator[Replay]:
    replay = Replay()
    yield replay
    replay.close()


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


def test_broker_replays_the_recorded_responses(broker: Replay) -> None:
    with socket.create_connection(broker.address, timeout=10) as client, client.makefile("rb") as stream:
        for each in EXCHANGES:
            client.sendall(bytes.fromhex(each.request))
            if each.response is not None:
                prefix = stream.read(4)
                assert prefix + stream.read(int.from_bytes(prefix, "big")) == broker.response(each)
        client.shutdown(socket.SHUT_WR)
        assert stream.read() == b""  # the broker has read everything and sends nothing else
    assert [request.hex() for request in broker.requests] == [each.request for each in EXCHANGES]
'''


def pytest_file(capture: Capture, rows: Iterable[int]) -> Iterator[str]:
    """Yield the file's text. Secrets are masked, unless the capture shows them."""
    yield _HEAD
    yield "EXCHANGES = [\n"
    omitted = 0
    for row in rows:
        exchange = capture.exchange(row)
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
