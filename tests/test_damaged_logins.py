"""What damage makes of logins and other secrets: bytes of one message in another, cut messages, wrong pairs.

All is masked that may be a secret, and columns have the findings that decoding gives."""

import random
import struct
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dissector.capture_session import Capture
from dissector.core import limits
from dissector.exchange.message_subjects import ERROR
from dissector.exchange.model import Exchange
from dissector.findings.summary import SEVERITIES, FindingKind, FindingSummary
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.topics import CLUSTER_METADATA_ID
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message_layout import SASL_TOKEN
from tests.cases import cases
from tests.traffic import SYN, Turn, capture_of, conversation, request, response
from tools.fuzz.logins import Said, exchange, login_file

HIDDEN = b"aB3dE6gH9jK2mN5p"
OUT_OF_FRAME = b"\xff\xff\xff\xff" + HIDDEN
METADATA = exchange(3, 12, {"topics": None}, {})


def shown(folder: Path, turns: list[Turn], *, opened: bool = True, segment: int = 1400, **flavour: int) -> list[bytes]:
    """The bytes of all messages, as anyone sees them."""
    path = capture_of(folder, conversation(turns, handshake=opened, segment=segment), **flavour)
    with Capture([path]) as capture:
        deque(capture.read(), maxlen=0)
        messages = [each for row in capture.exchanges() for each in (row.request, row.response)]
        return [each.data for each in messages if each is not None]


def holds(frames: list[bytes]) -> bool:
    return any(HIDDEN[:6] in frame for frame in frames)


def turns_of(*said: Said) -> list[Turn]:
    return [Turn(each.from_client, each.data) for each in said]


@cases(("topic_id", "is_shown"), [
    ("vHSSmt5wQbKvSpXGSSIm4Q", True),
    (CLUSTER_METADATA_ID, False),
    ("AAAAAAAAAAAAAAEAAAAAAQ", False),  # one of its zeros was damaged
])  # fmt: skip
def test_a_connection_that_may_fetch_the_metadata_log_may_have_secrets(
    tmp_path: Path, topic_id: str, is_shown: bool
) -> None:
    fetch = exchange(1, 13, {"topics": [{"topic_id": topic_id, "partitions": [{"partition": 0}]}]}, {})
    turns = [*turns_of(*fetch), Turn(False, OUT_OF_FRAME)]
    assert holds(shown(tmp_path, turns)) == is_shown


def test_a_connection_of_the_quorum_may_have_secrets(tmp_path: Path) -> None:
    vote = exchange(52, 0, {"topics": []}, {})
    assert not holds(shown(tmp_path, [*turns_of(*vote), Turn(False, OUT_OF_FRAME)]))


def test_bytes_before_the_first_secret_of_a_connection_are_masked_too(tmp_path: Path) -> None:
    """Damage may put bytes of a response into what began before its request was sent."""
    login = exchange(36, 0, {"auth_bytes": b"\0alice\0" + HIDDEN}, {})
    turns = [*turns_of(*METADATA), Turn(False, OUT_OF_FRAME), *turns_of(*login)]
    assert not holds(shown(tmp_path, turns))
    assert holds(shown(tmp_path, turns[:-2]))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_packet_with_a_damaged_flag_begins_no_connection_without_secrets(tmp_path: Path, is_damaged: bool) -> None:
    first, *later = conversation([Turn(True, request(5)), Turn(False, OUT_OF_FRAME)], handshake=False)
    if is_damaged:
        packets = [replace(first, seq=first.seq - 1, flags=SYN), *later]
    else:
        packets = [replace(first, seq=first.seq - 1, flags=SYN, payload=b""), first, *later]
    with Capture([capture_of(tmp_path, packets)]) as capture:
        deque(capture.read(), maxlen=0)
        rows = list(capture.exchanges())
    assert [row.row.api for row in rows] == ["Metadata", "unparsed"]
    assert holds([row.response.data for row in rows if row.response is not None]) != is_damaged


def test_a_response_that_does_not_fit_the_first_request_is_shown(tmp_path: Path) -> None:
    """A whole request of an API without secrets is what it says, and so is its response, if that is alone."""
    asked, answered = METADATA
    odd = Turn(False, response(7, b"\0\0\0\0\0\x7f" + HIDDEN))
    assert holds(shown(tmp_path, [*turns_of(asked), odd]))
    assert holds(shown(tmp_path, [*turns_of(asked, answered, asked), odd]))


def versions(count: int) -> bytes:
    """A body of ApiVersions v0 that announces so many APIs, and has a secret in place of the last ones."""
    return struct.pack(">hi", 0, count) + struct.pack(">hhh", 3, 0, 12) * 3 + HIDDEN * 2


@cases(("first", "opened", "is_shown"), [(3, True, True), (3, False, True), (36, True, False)])
def test_the_fields_of_a_cut_response_are_shown_where_no_login_is(
    tmp_path: Path, first: int, opened: bool, is_shown: bool
) -> None:
    """A size prefix that is wrong makes one response of several."""
    asked = [
        Turn(True, request(1, api_key=first)),
        Turn(False, response(1)),
        Turn(True, request(2, api_key=18, body=b"")),
    ]
    answer = Turn(False, struct.pack(">ii", 5_000, 2) + versions(8))
    assert holds(shown(tmp_path, [*asked, answer], opened=opened)) == is_shown


@cases(("first", "is_shown"), [(3, True), (36, False)])
def test_a_client_id_that_is_not_all_there_is_shown_where_no_login_is(
    tmp_path: Path, first: int, is_shown: bool
) -> None:
    """Where the size of a login's request is in the frame before, its fields make a header: of FindCoordinator, whose
    client id begins with the token."""
    shifted = struct.pack(">ihh", 0x20000, 10, 4) + b"fuzz" + struct.pack(">h", len(HIDDEN) + 5) + HIDDEN
    turns = [Turn(True, request(1, api_key=first)), Turn(False, response(1)), Turn(True, shifted)]
    assert holds(shown(tmp_path, turns)) == is_shown


VERSIONS_ANSWER = struct.pack(">hihhhi", 0, 1, 3, 0, 12, 0)[:-4]


@cases(("behind", "segment", "is_shown"), [
    (b"", 1400, True),
    (struct.pack(">ii", 40, 8), 1400, False),  # the next response begins in the same segment
    (b"", 9, False),
])  # fmt: skip
def test_of_a_broker_that_sends_too_much_all_is_shown_if_its_size_is_right(
    tmp_path: Path, behind: bytes, segment: int, is_shown: bool
) -> None:
    """librdkafka's brokers of one's own: bytes too many, before anything that may be a login was sent. The size is
    wrong if the response is not alone in its segment."""
    turns = [
        Turn(True, request(7, api_key=18, body=b"")),
        Turn(False, response(7, VERSIONS_ANSWER + HIDDEN) + behind),
    ]
    path = capture_of(tmp_path, conversation(turns, handshake=True, segment=segment))
    with Capture([path]) as capture:
        deque(capture.read(), maxlen=0)
        rows = list(capture.exchanges())
    found = rows[0]
    assert found.response is not None
    assert (HIDDEN in found.response.data) == is_shown
    assert "trailing-bytes" in {each.code for each in found.findings}
    assert ("masked" in {each.code for each in found.findings}) != is_shown


@cases(("key", "text", "is_shown"), [
    (18, b"secret", False), (18, b"secre", True), (18, b"metadata.version", True), (18, b"metadata.versions", True),
    (18, b"metadata.version12345", True), (18, b"metadata.version123456", False), (18, b"metadata.Version", False),
    (3, b"secret", True),  # a broker takes no other request before a login
])  # fmt: skip
def test_text_in_a_malformed_response_before_a_login_may_be_anothers(
    tmp_path: Path, key: int, text: bytes, is_shown: bool
) -> None:
    """ApiVersions has none but names of features. The reason is there."""
    turns = [
        *(turns_of(METADATA[0]) if key == 3 else [Turn(True, request(7, api_key=key, body=b""))]),
        Turn(False, response(7, b"\0\0\xff\xff\xff\xf0" + bytes(40) + text + bytes(9))),
    ]
    with Capture([capture_of(tmp_path, conversation(turns, handshake=True))]) as capture:
        deque(capture.read(), maxlen=0)
        found = capture.exchange(0)
    assert found.response is not None
    assert "malformed" in {each.code for each in found.findings}
    assert (text in found.response.data) == is_shown


def test_bytes_too_many_are_masked_on_a_connection_that_logs_in_later(tmp_path: Path) -> None:
    asked = [Turn(True, request(7, api_key=18, body=b"")), Turn(False, response(7, VERSIONS_ANSWER + HIDDEN))]
    assert holds(shown(tmp_path, asked))
    assert not holds(shown(tmp_path, [*asked, *turns_of(*exchange(17, 1, {"mechanism": "PLAIN"}, {}))]))
    assert holds(shown(tmp_path, [*asked, *turns_of(*METADATA)]))


def test_a_cut_response_is_masked_if_its_correlation_id_was_used_twice(tmp_path: Path) -> None:
    """It may be the response to either request; nothing shows that this connection logs in."""
    cut = struct.pack(">ii", 5_000, 9) + versions(8)
    for ids, is_shown in (((8, 9), True), ((9, 9), False)):
        asked = [Turn(True, request(each, api_key=key, body=b"")) for each, key in zip(ids, (18, 18), strict=True)]
        first = [Turn(True, request(1)), Turn(False, response(1))]
        assert holds(shown(tmp_path, [*first, *asked, Turn(False, cut)], opened=False)) == is_shown


PROOF = b"c=biws,r=abc\0alice,p=\0" + HIDDEN


@cases(("from_client", "token"), [(True, PROOF), (False, b"\0v=" + HIDDEN + b"\0=")])
@cases("raw", [False, True])
def test_a_damaged_token_of_scram_is_no_name_of_plain(
    tmp_path: Path, from_client: bool, token: bytes, raw: bool
) -> None:
    handshake = exchange(17, 0 if raw else 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
    tokens = (token, b"") if from_client else (b"\0alice\0word", token)
    if raw:
        login = [Turn(n == 0, struct.pack(">i", len(each)) + each) for n, each in enumerate(tokens)]
    else:
        login = turns_of(*exchange(36, 1, {"auth_bytes": tokens[0]}, {"auth_bytes": tokens[1]}))
    assert not holds(shown(tmp_path, [*turns_of(*handshake), *login]))


@pytest.mark.long
@pytest.mark.slow
def test_a_token_with_more_parts_than_a_frame_may_have_is_masked() -> None:
    parts = b"x=y\x01" * (limits.DEFAULT.tree_nodes + 1)
    token = b"n,,\x01auth=Bearer " + HIDDEN + b"\x01" + parts + b"\x01"
    frame = struct.pack(">i", len(token)) + token
    context = DecodingContext(mechanism="OAUTHBEARER", may_have_secrets=True)
    masked = mask_secrets(frame, len(frame), SASL_TOKEN, len(frame), context)
    assert HIDDEN not in masked.data
    assert len(masked.data) == len(frame)
    assert {finding.code for finding in masked.layout.findings} == {"over-limit", "masked"}


CHANGED = 16


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at a few at a time, so that later ones may use what was learned from earlier ones."""
    monkeypatch.setattr("dissector.findings.message_column.TOGETHER", 4)


def decoded(row: Exchange) -> FindingSummary:
    severity = row.row.severity
    return FindingSummary(
        frozenset(finding.code for finding in row.findings),
        -1 if severity is None else SEVERITIES.index(severity),
        frozenset(ERROR.of(row)),
        tuple(sorted(FindingKind(finding.code, finding.severity) for finding in row.findings)),
    )


def summaries(capture: Capture) -> list[FindingSummary]:
    """What columns say of each row."""
    rows = np.arange(len(capture))
    deque(capture.findings.examine_messages(rows), maxlen=0)
    numbers, known = capture.findings.message_summaries(rows)
    return [known[number] for number in numbers.tolist()]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("in_steps")
def test_findings_of_damaged_logins_are_the_same_in_columns_and_decoded(tmp_path: Path) -> None:
    """Several connections in one capture, so that what one of them has taught is used for others."""
    for number in range(CHANGED):
        paths = [tmp_path / f"{n}.pcap" for n in range(4)]
        for n, path in enumerate(paths):
            path.write_bytes(login_file(random.Random(f"column {number} {n % 2}"), recorded=0.05 * (n < 1))[0])
        with Capture([str(path) for path in paths]) as capture:
            deque(capture.read(), maxlen=0)
            assert summaries(capture) == [decoded(row) for row in capture.exchanges()], number


ODD = HIDDEN.decode() + "\x01"
"""No client id: on a connection with a login the request is masked from it on."""


def heartbeat(client_id: str, number: int) -> bytes:
    return request(number, api_key=12, client_id=client_id.encode(), body=struct.pack(">h1sih1s", 1, b"g", 1, 1, b"m"))


@pytest.mark.usefixtures("in_steps")
@pytest.mark.parametrize(("client_id", "answer"), [(ODD, b"\0\0"), ("tests-of-heartbea", b"\0\0" + HIDDEN)])
def test_a_message_that_is_shown_on_one_connection_is_masked_on_another(
    tmp_path: Path, client_id: str, answer: bytes
) -> None:
    handshake = exchange(17, 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
    plain = [(heartbeat("tests-of-heartbea", n), response(n, b"\0\0" + HIDDEN[: len(answer) - 2])) for n in range(9)]
    harmless = [(request(100), response(100)), *plain]
    odd = [(heartbeat(client_id, n), response(n, answer)) for n in range(9, 18)]
    login = [(handshake[0].data, handshake[1].data), *odd]
    packets = [
        packet
        for port, said in enumerate((harmless, [*harmless, *odd], login), 40001)
        for packet in conversation(
            [Turn(n == 0, each) for pair in said for n, each in enumerate(pair)], client=("10.0.0.1", port)
        )
    ]
    with Capture([capture_of(tmp_path, packets)]) as capture:
        deque(capture.read(), maxlen=0)
        rows = list(capture.exchanges())
        assert "masked" in {finding.code for finding in rows[-1].findings}
        assert summaries(capture) == [decoded(row) for row in rows]


def test_the_list_says_what_is_masked_and_what_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "pasted.txt"
    path.write_text("> 0000001600030000000003e80000ffff00010000000000000000\n> ffffffff6162636465666768\n")
    with Capture([str(path)]) as capture:
        deque(capture.read(), maxlen=0)
        words = [row.row.info for row in capture.exchanges()]
    assert len(words) == 2
    assert words[0].endswith("12 bytes masked: --show-secrets shows them")
    assert words[1].endswith("12 bytes masked: --show-secrets shows them")
    with Capture([str(path)], show_secrets=True) as capture:
        deque(capture.read(), maxlen=0)
        assert not any("masked" in row.row.info for row in capture.exchanges())


@cases("start", [b"", b"\x01"])
@cases(("key", "version"), [(2, 0x7FFF), (0, -1), (0x633D, 0x6269)])
def test_a_client_id_in_a_version_that_no_api_ever_had_is_not_shown(
    tmp_path: Path, key: int, version: int, start: bytes
) -> None:
    client_id = start + b"c=biws,p=" + HIDDEN
    head = struct.pack(">hhih", key, version, 7, len(client_id)) + client_id + bytes(20)
    turns = [
        *turns_of(*exchange(36, 2, {"auth_bytes": b"n,,n=x"}, {})),
        Turn(True, struct.pack(">i", len(head)) + head),
    ]
    path = capture_of(tmp_path, conversation(turns, handshake=True))
    with Capture([path]) as capture:
        deque(capture.read(), maxlen=0)
        rows = list(capture.exchanges())
        assert not any(HIDDEN.decode() in repr(exchange.row) for exchange in rows)
        assert not any(HIDDEN in each.data for row in rows for each in (row.request, row.response) if each)
