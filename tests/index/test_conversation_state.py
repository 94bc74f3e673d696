"""What a conversation teaches, on recordings: later names apply to earlier rows."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dissector import encode_request, encode_response
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from dissector.index import conversation_state, frame_table
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from tests.conftest import PCAPS
from tests.index.test_indexer import Fed
from tests.traffic import Turn, capture_of, conversation

TOPIC_ID = "Zm9vYmFyYmF6cXV4MTIzNA"


def metadata(number: int) -> tuple[bytes, bytes]:
    """A request, and a response that names a topic."""
    body = {"topics": [{"name": "orders", "topic_id": TOPIC_ID}]}
    asked = encode_request("Metadata", 12, {"topics": None}, correlation_id=number)
    return asked, encode_response("Metadata", 12, body, correlation_id=number)


def exchanges(name: str) -> list[Exchange]:
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        return list(capture.exchanges())


def notes(exchange: Exchange) -> dict[str, str]:
    messages = filter(None, (exchange.request, exchange.response))
    return {node.path: node.note for message in messages for node in message.tree.walk() if node.note}


def test_topic_ids_have_names_in_the_list_the_tree_and_json() -> None:
    seen = 0
    for exchange in exchanges("java"):
        if exchange.row.api != "Fetch" or exchange.request is None:
            continue
        line: dict[str, Any] = json.loads(json_line(exchange))
        for n, topic in enumerate(line["request"]["body"].get("topics", ())):
            name = topic["topic_id_decoded"]
            assert name in exchange.row.info
            assert notes(exchange)[f"body.topics[{n}].topic_id"] == name
            seen += 1
    assert seen >= 2


@pytest.mark.long
def test_nodes_have_addresses_and_members_client_ids() -> None:
    found: set[str] = set()
    for exchange in exchanges("java-classic"):
        found |= {f"{path.rsplit('.', 1)[-1]} {note}" for path, note in notes(exchange).items()}
    assert "leader_id 127.0.0.1:9092" in found
    assert any(each.startswith("member_id ") for each in found)


def test_producers_have_their_transactional_ids() -> None:
    names = {note for exchange in exchanges("java-transactions") for path, note in notes(exchange).items()
             if path.endswith("producer_id")}  # fmt: skip
    assert any("NO_PRODUCER_ID" not in name for name in names)


def test_assignments_are_decoded_where_the_message_does_not_name_the_protocol() -> None:
    found = 0
    for exchange in exchanges("kafka-python-as-0.11"):
        if exchange.row.api == "SyncGroup" and exchange.response is not None:
            assert exchange.row.version is not None
            assert exchange.row.version < 5
            assert exchange.response.decoded_body["assignment_decoded"]["assigned_partitions"]
            found += 1
    assert found


@pytest.mark.long
def test_envelopes_of_a_quorum_are_opened_on_both_sides() -> None:
    found = 0
    for exchange in exchanges("kraft-quorum"):
        if exchange.row.api == "Envelope" and exchange.request is not None and exchange.response is not None:
            request_body, response_body = exchange.request.decoded_body, exchange.response.decoded_body
            assert "body" in request_body["request_data_decoded"]
            assert request_body["request_principal_decoded"]["name"]
            found += "response_data_decoded" in response_body
    assert found >= 4


def test_a_name_that_is_learned_later_applies_to_earlier_rows(tmp_path: Path) -> None:
    partition = {"partition": 0, "fetch_offset": 0}
    fetch = encode_request("Fetch", 13, {"topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}]})
    ask, response = metadata(1)
    path = capture_of(tmp_path, conversation([Turn(True, fetch), Turn(True, ask), Turn(False, response)]))
    with Capture([path]) as capture:
        first, _ = capture.exchanges()
    assert first.row.info == "orders[0]"
    assert notes(first)["body.topics[0].topic_id"] == "orders"


def test_the_id_that_stands_for_no_topic_is_nobodys(tmp_path: Path) -> None:
    topic = {"name": "orders", "topic_id": NO_TOPIC_ID}
    ask = encode_request("Metadata", 12, {"topics": [topic]})
    missing = encode_response("Metadata", 12, {"topics": [topic | {"error_code": 3}]})
    with Capture([capture_of(tmp_path, conversation([Turn(True, ask), Turn(False, missing)]))]) as capture:
        [exchange] = capture.exchanges()
    assert "body.topics[0].topic_id" not in notes(exchange)
    assert b"topic_id_decoded" not in json_line(exchange)


@pytest.mark.long
def test_the_metadata_log_has_its_name_though_nobody_says_it() -> None:
    fetches = [exchange.row.info for exchange in exchanges("kraft-quorum") if exchange.row.api == "Fetch"]
    assert sum(info.startswith("__cluster_metadata[0]") for info in fetches) > 50


def test_software_that_rows_mask_has_no_name_anywhere(tmp_path: Path) -> None:
    software = {"client_software_name": "hunter2", "client_software_version": "1"}
    offers = {"error_code": 0, "api_keys": [], "throttle_time_ms": 0}
    known = []
    for number, client_id in enumerate(("app", "\x1b[2J")):
        folder = tmp_path / str(number)
        folder.mkdir()
        request = encode_request("ApiVersions", 3, software, correlation_id=1, client_id=client_id)
        response = encode_response("ApiVersions", 3, offers, correlation_id=1)
        with Capture([capture_of(folder, conversation([Turn(True, request), Turn(False, response)]))]) as capture:
            [exchange] = capture.exchanges()
            assert exchange.request is not None
            known.append((b"hunter2" in exchange.request.data, capture.connections.software(1)[0]))
    assert known == [(True, "hunter2"), (False, "")]


def test_each_handshake_tells_the_mechanism_of_its_own_connection(tmp_path: Path) -> None:
    """Also where a request came in pieces."""
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "GSSAPI", "PLAIN", "no name")
    for segment in (10, 1400):
        packets = []
        for number, mechanism in enumerate(mechanisms):
            asked = encode_request("SaslHandshake", 1, {"mechanism": mechanism}, correlation_id=7)
            answered = encode_response(
                "SaslHandshake", 1, {"error_code": 0, "mechanisms": [mechanism]}, correlation_id=7
            )
            turns = [Turn(True, asked), Turn(False, answered)]
            packets += conversation(turns, segment=segment, client=("10.0.0.1", 40_000 + number))
        with Capture([capture_of(tmp_path, packets)]) as capture:
            list(capture.exchanges())
            state = capture.pipeline.indexer.conversation_state
            assert [state.context(number, 10_000).mechanism for number in range(5)] == [*mechanisms[:4], None]


def test_names_that_were_learned_elsewhere_are_added() -> None:
    states = []
    for name in ("java-classic", "java-transactions"):
        with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
            list(capture.read())
            capture.connections.learn()
            states.append(capture.pipeline.indexer.conversation_state)
    one, other = (asdict(state.shared_state()) for state in states)
    states[1].merge(states[0].shared_state())
    merged = asdict(states[1].shared_state())
    for kind in ("topics", "groups", "nodes", "members", "producers"):
        assert {*merged[kind]} == {*one[kind], *other[kind]}
    assert one["members"].keys() - other["members"].keys()


def test_a_checkpoint_keeps_what_is_known_of_its_connections() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        list(capture.read())
        capture.connections.learn()
        state = capture.pipeline.indexer.conversation_state
        known = [each for each in range(20) if state.versions.software(each) != ("", "")]
        assert len(known) > 1
        first = state.versions.software(known[0]), state.versions.advertised(known[0])
        state.retain({known[0]})
        assert (state.versions.software(known[0]), state.versions.advertised(known[0])) == first
        assert {state.versions.software(each) for each in known[1:]} == {("", "")}
        assert not any(state.versions.advertised(each) for each in known[1:])


def test_requests_in_pieces_that_differ_tell_each_their_mechanism(tmp_path: Path) -> None:
    packets, mechanisms = [], ("PLAIN", "SCRAM-SHA-256")
    for number, mechanism in enumerate(mechanisms):
        asked = encode_request("SaslHandshake", 1, {"mechanism": mechanism}, correlation_id=number)
        told = encode_response("SaslHandshake", 1, {"error_code": 0, "mechanisms": [mechanism]}, correlation_id=number)
        turns = [Turn(True, asked), Turn(False, told)]
        packets += conversation(turns, client=("10.0.0.1", 40_001 + number), segment=9)
    with Capture([capture_of(tmp_path, packets)]) as capture:
        list(capture.read())
        capture.connections.learn()
        state = capture.pipeline.indexer.conversation_state
        assert [state.context(number, 1 << 40).mechanism for number in (0, 1)] == [*mechanisms]


def test_requests_too_long_to_compare_tell_each_their_software(tmp_path: Path) -> None:
    """Their responses are equal."""
    packets = []
    offers = {"error_code": 0, "api_keys": [], "throttle_time_ms": 0}
    told = encode_response("ApiVersions", 3, offers, correlation_id=1)
    for number, name in enumerate(("first", "second")):
        software = {"client_software_name": name, "client_software_version": "1"}
        asked = encode_request("ApiVersions", 3, software, correlation_id=1, client_id="x" * number)
        packets += conversation([Turn(True, asked), Turn(False, told)], client=("10.0.0.1", 40_001 + number))
    with Capture([capture_of(tmp_path, packets)]) as capture:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame_table, "LONGEST", len(told))
            list(capture.read())
            capture.connections.learn()
        assert [capture.connections.software(number)[0] for number in (1, 2)] == ["first", "second"]


def test_rows_that_wait_for_what_teaches_are_pending(tmp_path: Path) -> None:
    ask = [encode_request("Metadata", 12, {"topics": None}, correlation_id=n) for n in (1, 2)]
    told = encode_response("Metadata", 12, {"topics": []}, correlation_id=1)
    fetch = encode_request("Fetch", 12, {"topics": []}, correlation_id=3)
    turns = [Turn(True, ask[0]), Turn(False, told), Turn(True, ask[1]), Turn(True, fetch)]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        capture.connections.learn()
        rows = list(capture.exchanges())
        pending = capture.pipeline.indexer.conversation_state.pending_rows
        assert [(rows[row].row.api, rows[row].row.correlation_id) for row in pending.tolist()] == [("Metadata", 2)]


def test_advertised_versions_are_taken_once() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        list(capture.read())
        capture.connections.learn()
        state = capture.pipeline.indexer.conversation_state
        taken = state.versions.take_advertised()
        assert taken
        assert all(state.versions.advertised(connection) == versions for connection, versions in taken.items())
        assert not state.versions.take_advertised()


def test_a_body_that_was_forgotten_teaches_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for most in (1 << 16, 1):
        monkeypatch.setattr(conversation_state, "MOST_BODIES", most)
        with Capture([str(PCAPS / "java-classic.pcapng")]) as capture:
            list(capture.read())
            capture.connections.learn()
            names.append(asdict(capture.pipeline.indexer.conversation_state.shared_state()))
    assert names[0] == names[1]


def test_who_asks_while_rows_are_added_takes_nothing_from_who_asks_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread does, while a batch is read."""
    fed = Fed()
    state, table = fed.indexer.conversation_state, fed.indexer.table
    add = table.set_responses
    monkeypatch.setattr(table, "set_responses", lambda *pairs: (state.update(fed.indexer.generation), add(*pairs)))
    asked, answered = metadata(1)
    fed.feed((0, 0, asked), (1, 1, answered))
    state.update(fed.indexer.generation)
    assert state.topic_names[TOPIC_ID] == "orders"


def test_who_comes_while_another_thread_learns_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Fed()
    asked, answered = metadata(1)
    fed.feed((0, 0, asked), (1, 1, answered))
    state, learns, goes_on = fed.indexer.conversation_state, threading.Event(), threading.Event()
    learn = state.versions.learn
    monkeypatch.setattr(state.versions, "learn", lambda rows: (learns.set(), goes_on.wait(10), learn(rows)))

    def name() -> object:
        state.update(fed.indexer.generation)
        return state.topic_names.get(TOPIC_ID)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(name)
        assert learns.wait(10)
        second = threads.submit(name)
        wait([second], 0.05)
        goes_on.set()
        assert first.result() == second.result() == "orders"
