"""Exchanges as a Python test: their bytes, a server that gives the recorded answers again, and what they hold.

The file stands by itself: it needs pytest and kdissect. Every word from the wire is in it as hex, or as an escaped
literal of ASCII: none can end a string, or be code. What is no whole exchange (an orphan, a gap, a token) is left out,
and counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dissector.capture_session import Capture
from dissector.core.text import counted
from dissector.exchange.model import Exchange, ExchangeMessage

_SCALARS: Final = (int, str, bytes, type(None))
_WIDTH: Final = 50
"""Bytes of hex on a line."""
_LONGEST: Final = 200
"""Characters of a value that is asserted; longer ones are in the bytes alone."""

_HEAD: Final = '''"""Recorded exchanges as a test, made by `kdissect export`. It needs pytest and kafka-dissector.

`broker` is a server that answers a client as the recorded broker did: requests of the same API and version get the
recorded responses in their order, the last one again where they run out, each with the correlation id that was asked
under. Point a client at `broker.address`. A response that names brokers still names the recorded ones.
"""

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import dissector
import pytest


class Recorded(NamedTuple):
    """An exchange: its frames as hex, size prefix included, and the fields of its bodies that are plain values."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request: str
    response: str | None
    asked: dict[str, Any]
    answered: dict[str, Any]


'''

_TAIL: Final = '''

class Replay:
    """A broker on loopback that says again what the recorded one said."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        """What came, size prefix included."""
        self._answers: defaultdict[tuple[int, int], list[bytes | None]] = defaultdict(list)
        for each in EXCHANGES:
            answer = None if each.response is None else bytes.fromhex(each.response)
            self._answers[each.api_key, each.api_version].append(answer)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                request = stream.read(int.from_bytes(prefix, "big"))
                self.requests.append(prefix + request)
                answers = self._answers[int.from_bytes(request[:2], "big"), int.from_bytes(request[2:4], "big")]
                if not answers:
                    return  # nothing was recorded: a broker, too, closes on what it does not know
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                if answer is not None:
                    client.sendall(answer[:4] + request[4:8] + answer[8:])


@pytest.fixture
def broker() -> Iterator[Replay]:
    replay = Replay()
    yield replay
    replay.close()


@pytest.mark.parametrize("recorded", EXCHANGES, ids=lambda each: str(each.number))
def test_what_was_recorded(recorded: Recorded) -> None:
    request = dissector.decode_request(bytes.fromhex(recorded.request))
    assert request.header["request_api_key"] == recorded.api_key
    assert request.header["request_api_version"] == recorded.api_version
    assert request.header["correlation_id"] == recorded.correlation_id
    assert request.header.get("client_id") == recorded.client_id
    assert {name: request.body[name] for name in recorded.asked} == recorded.asked
    if recorded.response is not None:
        response = dissector.decode_response(
            bytes.fromhex(recorded.response), api_key=recorded.api_key, api_version=recorded.api_version
        )
        assert response.header["correlation_id"] == recorded.correlation_id
        assert {name: response.body[name] for name in recorded.answered} == recorded.answered


def test_the_broker_answers_as_it_was_recorded(broker: Replay) -> None:
    with socket.create_connection(broker.address, timeout=10) as client, client.makefile("rb") as stream:
        for each in EXCHANGES:
            client.sendall(bytes.fromhex(each.request))
            if each.response is not None:
                prefix = stream.read(4)
                assert (prefix + stream.read(int.from_bytes(prefix, "big"))).hex() == each.response
        client.shutdown(socket.SHUT_WR)
        assert stream.read() == b""  # the broker has read all, and had nothing else to say
    assert [request.hex() for request in broker.requests] == [each.request for each in EXCHANGES]
'''


def pytest_file(capture: Capture, rows: Iterable[int]) -> Iterator[str]:
    """The file's text, in pieces. Secrets are masked, unless the capture shows them."""
    yield _HEAD
    yield "EXCHANGES = [\n"
    left_out = 0
    for row in rows:
        exchange = capture.exchange(row)
        if _is_whole(exchange):
            yield from _recorded(exchange)
        else:
            left_out += 1
    yield "]\n"
    if left_out:
        yield f"# {counted(left_out, 'row')} left out: orphans, tokens, gaps, or messages not captured whole.\n"
    yield _TAIL


def _is_whole(exchange: Exchange) -> bool:
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
    for name, message in (("asked", exchange.request), ("answered", exchange.response)):
        yield f"        {name}={_plain(message.body if message is not None else {})},\n"
    yield "    ),\n"


def _hex(message: ExchangeMessage | None) -> str:
    """A frame as a literal, in lines."""
    if message is None:
        return "None"
    lines = (message.data[at : at + _WIDTH].hex() for at in range(0, len(message.data), _WIDTH))
    return "(\n" + "".join(f'            "{line}"\n' for line in lines) + "        )"


def _plain(body: Mapping[str, object]) -> str:
    """The fields of a body that are neither lists nor structures, as a literal of ASCII alone."""
    fields = (f"{name!r}: {value!a}" for name, value in body.items()
              if isinstance(value, _SCALARS) and len(ascii(value)) <= _LONGEST)  # fmt: skip
    return "{" + ", ".join(fields) + "}"
