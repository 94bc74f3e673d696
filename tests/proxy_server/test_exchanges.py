"""Which response answers which request, and what is said of logins that can't work behind a proxy."""

import random
import struct

import pytest

from dissector.protocol.message_layout import sized
from dissector.proxy_server.exchanges import NotKafkaError, RequestStream, ResponseStream
from dissector.proxy_server.ordinary import PendingRequests
from tests.frames import request, response
from tests.proxy_server.test_rewriting import OwnAddresses


class Both:
    """Both directions of a connection, and what went out of them."""

    def __init__(self) -> None:
        self.pending = PendingRequests()
        self.said: list[str] = []
        self.to_broker, self.to_client = b"", b""
        self.requests = RequestStream(self._to_broker, self.pending, self.said.append)
        self.responses = ResponseStream(self._to_client, self.pending, OwnAddresses())

    def _to_broker(self, data: bytes) -> None:
        self.to_broker += data

    def _to_client(self, data: bytes) -> None:
        self.to_client += data

    def ask(self, data: bytes, *, step: int = 1 << 20) -> None:
        before = self.to_broker
        for at in range(0, len(data), step):
            self.requests.feed(data[at : at + step])
        assert self.to_broker == before + data

    @property
    def waiting(self) -> list[int]:
        return [each[0] for each in self.pending]


def handshake(number: int, version: int, mechanism: str) -> bytes:
    body = struct.pack(">h", len(mechanism)) + mechanism.encode()
    return request(number, api_key=17, version=version, body=body)


@pytest.mark.parametrize(
    ("mechanism", "is_said"),
    [("GSSAPI", True), ("AWS_MSK_IAM", True), ("PLAIN", False), ("SCRAM-SHA-512", False), ("GSSAPI2", False)],
)
def test_mechanisms_that_sign_the_name_of_the_host_are_named(mechanism: str, is_said: bool) -> None:
    both = Both()
    both.ask(handshake(1, 1, mechanism))
    assert [words.startswith(f"SASL {mechanism}: ") for words in both.said] == [True] * is_said


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
def test_raw_tokens_wait_for_no_response_and_end_with_the_next_request(step: int) -> None:
    both = Both()
    both.ask(handshake(1, 0, "PLAIN") + sized(b"\0alice\0secret") + sized(b"") + request(2, api_key=12), step=step)
    assert both.waiting == [1, 2]
    both.ask(request(3, api_key=3, version=12))
    assert both.waiting == [1, 2, 3]


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("version", "before_acks"), [(2, b""), (3, b"\xff\xff"), (8, b"\0\x04txn1"), (9, b"\0\0"), (12, b"\0\x05txn1")]
)
def test_produce_without_acknowledgement_waits_for_no_response(version: int, before_acks: bytes, step: int) -> None:
    both = Both()
    for number, acks in enumerate((0, 1, -1)):
        both.ask(
            request(number, api_key=0, version=version, body=before_acks + struct.pack(">h", acks) + bytes(9)),
            step=step,
        )
    assert both.waiting == [1, 2]


def test_responses_that_answer_nothing_pass_and_leave_others_their_requests() -> None:
    both = Both()
    both.ask(b"".join(request(number, api_key=12) for number in range(4)))
    data = response(0) + response(77) + response(2) + response(1)
    both.responses.feed(data)
    assert both.to_client == data
    assert both.waiting == [3]


def test_what_is_held_of_a_head_goes_on_when_the_stream_ends() -> None:
    both = Both()
    both.requests.feed(request(1)[:9])
    assert both.to_broker == b""
    both.requests.end()
    assert both.to_broker == request(1)[:9]


def test_frames_that_are_lost_later_pass_as_they_are() -> None:
    both = Both()
    garbage = b"\xff\xff\xff\xff" + random.Random(1).randbytes(500)
    both.ask(request(1) + garbage)
    both.ask(garbage)
    assert len(both.said) == 1
    with pytest.raises(NotKafkaError):
        Both().requests.feed(garbage)
