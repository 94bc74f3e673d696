"""A TCP connection that sends Kafka requests, one at a time, and keeps every exchange so that it can be shown.

A server that closes the connection without a response to the first request often speaks TLS: a handshake finds out.

Invariants:
  * no response takes longer than the timeout, however slowly its bytes come, and none exceeds `MAX_RESPONSE_BYTES`;
  * whatever the server does ends in a response or in a `ProbeError`: servers are not trusted.
"""

import socket
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NoReturn, Self

from dissector.core.addresses import AddressError, BrokerAddress, split_scheme
from dissector.core.finding import Finding, Severity
from dissector.exchange.decoding_findings import reads_as
from dissector.exchange.info_column import info
from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow, worst
from dissector.protocol.codec.writer import write
from dissector.protocol.exact_readings import exact_readings
from dissector.protocol.message_layout import PREFIX, RESPONSE_ID, request_layout, response_layout, sized
from dissector.protocol.schema.headers import request_header_version
from dissector.protocol.schema.loader import api

MAX_RESPONSE_BYTES: Final = 8 << 20
"""Maximum bytes of a response; metadata of 100,000 partitions is half of it."""
MAX_TIMEOUT: Final = 600
TLS_ALERT: Final = b"\x15\x03"
SHOWN: Final = 40
"""Characters that are shown of a response that is not Kafka's."""


class ProbeError(Exception):
    """No response, or none of Kafka. Its text is one plain line; `negative` says that there was a response."""

    def __init__(self, words: str, *, negative: bool = False) -> None:
        super().__init__(words)
        self.negative = negative


def _damage(response: ExchangeMessage, api_key: int) -> str:
    """Why a response can't be read, and as what else it reads."""
    first = next(each.message for each in response.findings if each.severity is Severity.ERROR)
    found = exact_readings(response.data, response.size, response.layout, api_key)
    return "; ".join((first, reads_as(found, api_key, is_request=False).message) if found else (first,))


class ClosedError(ProbeError):
    """The server closed the connection instead of responding."""


_PLAIN: Final = ("", "kafka", "plaintext")
"""The protocols in front of an address with which there is neither TLS nor a login."""


def probed_address(text: str) -> BrokerAddress:
    """``broker:9092``, ``[::1]:9092``, ``broker``: Kafka's port; ``PLAINTEXT://broker:9092``, as in the settings of
    brokers. Raises `ProbeError`."""
    try:
        scheme, rest = split_scheme(text)
        if scheme not in _PLAIN:
            raise ProbeError(f"{text}: probe connects without TLS and without a login")
        return BrokerAddress.parse(rest)
    except AddressError as error:
        raise ProbeError(str(error)) from None


class BrokerConnection:
    """An open connection. `exchanges` has all requests, with or without a response."""

    def __init__(self, address: BrokerAddress, client_id: str, timeout: float) -> None:
        if not 0 < timeout <= MAX_TIMEOUT:
            raise ProbeError(f"a time-out of {timeout:g} s is not between 0 and {MAX_TIMEOUT} s")
        self.address = address
        self.exchanges: list[Exchange] = []
        self._client_id = client_id
        self._timeout = timeout
        self._received = b""
        try:
            self._socket = socket.create_connection(address, timeout)
        except TimeoutError:
            raise ProbeError(f"{address}: no connection within {timeout:g} s") from None
        except socket.gaierror:
            raise ProbeError(f"{address}: unknown host") from None
        except (OSError, UnicodeError) as error:
            raise ProbeError(f"{address}: {_reason(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, values: Mapping[str, object]) -> ExchangeMessage:
        """Send a request and wait for its response. Raises `ProbeError`, or `EncodeError` before anything is sent."""
        known = api(api_key)
        assert known is not None
        number = len(self.exchanges) + 1
        head = {"request_api_key": api_key, "request_api_version": version, "correlation_id": number}
        head_version = request_header_version(api_key, version)
        content = write("RequestHeader", head_version, head | {"client_id": self._client_id})
        content += write(known.request, version, values)
        data = sized(content)
        request = ExchangeMessage(time.time_ns(), len(data), data, len(data), request_layout(api_key, version))
        exchange = Exchange(self._row(number, known.name, version, request), api_key, request, None)
        self.exchanges.append(exchange)
        response = self._answer(exchange, data, api_key, version)
        exchange.response = response
        exchange.row = exchange.row._replace(
            response_size=response.size,
            latency_ns=response.time_ns - request.time_ns,
            info=info(request, response, [], {}),
            severity=worst(exchange.findings),
        )
        if any(finding.severity is Severity.ERROR for finding in response.findings):
            words = f"{self.address}: what answers {known.name} v{version} is damaged"
            raise ProbeError(f"{words}: {_damage(response, api_key)}", negative=True)
        return response

    def _row(self, number: int, name: str, version: int, request: ExchangeMessage) -> ExchangeRow:
        ours = BrokerAddress(*self._socket.getsockname()[:2])
        return ExchangeRow(
            number, "exchange", request.time_ns, 1, str(ours), str(self.address), name, version, number,
            self._client_id, request.size, *(None,) * 7, info(request, None, [], {}), None,
        )  # fmt: skip

    def _answer(self, exchange: Exchange, data: bytes, api_key: int, version: int) -> ExchangeMessage:
        try:
            frame = self._exchange_bytes(exchange.row.api, data)
        except ProbeError as error:
            finding = Finding("unanswered", Severity.WARNING, str(error), "request")
            exchange.row_findings.append(finding)
            exchange.row = exchange.row._replace(info=finding.message, severity=finding.severity)
            raise
        now = time.time_ns()
        if frame[RESPONSE_ID] != exchange.row.number.to_bytes(4, "big"):
            raise ProbeError(f"{self.address}: answered a request that was not sent: not Kafka", negative=True)
        return ExchangeMessage(now, len(frame), frame, len(frame), response_layout(api_key, version, frame))

    def _exchange_bytes(self, name: str, data: bytes) -> bytes:
        """Send the request `data` and return the frame of its response."""
        deadline = time.monotonic() + self._timeout
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(data)
            self._fill(PREFIX, deadline)
            size = int.from_bytes(self._received[:PREFIX], "big", signed=True)
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                self._stranger(size)
            self._fill(PREFIX + size, deadline)
        except TimeoutError:
            raise ProbeError(f"{self.address}: no complete answer to {name} within {self._timeout:g} s") from None
        except (ConnectionError, BrokenPipeError):
            if len(self.exchanges) == 1 and _speaks_tls(self.address, self._timeout):
                raise self._tls() from None
            raise ClosedError(f"{self.address}: closed the connection instead of answering {name}") from None
        except OSError as error:
            raise ProbeError(f"{self.address}: {_reason(error)}") from None
        frame, self._received = self._received[: PREFIX + size], self._received[PREFIX + size :]
        return frame

    def _fill(self, size: int, deadline: float) -> None:
        """Receive until there are `size` bytes."""
        parts, have = [self._received], len(self._received)
        while have < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            part = self._socket.recv(min(size - have, 1 << 16))
            if not part:
                raise ConnectionError
            parts.append(part)
            have += len(part)
        self._received = b"".join(parts)

    def _tls(self) -> ProbeError:
        return ProbeError(f"{self.address}: uses TLS: probe a PLAINTEXT listener")

    def _stranger(self, size: int) -> NoReturn:
        """Raise an error that says what responded instead of a broker; `size` is its first bytes read as a size."""
        head = self._received
        if head.startswith(TLS_ALERT):
            raise self._tls()
        try:
            self._socket.settimeout(min(self._timeout, 0.2))
            head += self._socket.recv(SHOWN)
        except OSError:
            pass  # what is there is enough
        if head.startswith(b"HTTP/"):
            raise ProbeError(f"{self.address}: answered like a web server (HTTP): not Kafka", negative=True)
        words = head.decode("latin-1").splitlines()[0]
        if words.isprintable() and words:
            raise ProbeError(f"{self.address}: answered {words!r}: not Kafka", negative=True)
        raise ProbeError(f"{self.address}: announces an answer of {size:,} bytes: not Kafka", negative=True)


def _speaks_tls(address: BrokerAddress, timeout: float) -> bool:
    """Whether a port speaks TLS, tried on another connection. Only the handshake is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the server's identity does not matter here
    try:
        with socket.create_connection(address, timeout) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # a handshake that was refused is one too
    except OSError:
        return False


def _reason(error: Exception) -> str:
    """Return the system's error message, without the number."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return words[0].lower() + words[1:]
