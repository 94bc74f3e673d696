"""No control character from the wire reaches a terminal, in any face: each runs in a pty of its own, over a capture of
which every word is hostile, and what it writes is taken apart strictly.

The words have a mark where a terminal would read on behind an introducer: the sequences that the terminal receives
must not contain the mark, and the text that it shows must.
"""

import json
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import dissector
from dissector.protocol.records.from_json import batch_bytes
from tests.capture.live.loopback import needs_rights
from tests.cases import cases
from tests.probe.servers import frame, serving
from tests.terminal import NotATerminalsError, Output, Terminal, run_on_terminal, terminal
from tests.traffic import Turn, capture_of, conversation

pytestmark = pytest.mark.slow

MARK = "31337"
ESCAPES = [
    f"\x1b[{MARK}m", f"\x1b]0;{MARK}\x07", f"\x1b]52;c;{MARK}\x1b\\", f"\x1bP{MARK}\x1b\\", f"\x1b_{MARK}\x1b\\",
    f"\x9b{MARK}m", f"\x9d0;{MARK}\x9c", f"\x90{MARK}\x9c", f"\x1bc{MARK}", "\x1b", f"\x07\x08\x7f{MARK}",
    f"\r\n{MARK}\x0b\x0c", f"\x00{MARK}", f"\u202e{MARK}\u202c", f"\u2066{MARK}", f"\u200b\u200f\ufeff{MARK}",
    f"\u2028{MARK}\u2029\x85", f"[/nope]{MARK}[red]", f"[bold]{MARK}[/]", f"[link=file:///etc]{MARK}",
    f"\U000e0041{MARK}", f"\t{MARK}", f"{MARK}" * 400, f"\udcff\udc9b{MARK}m", "'; rm -rf $HOME #\"\\" + MARK,
]  # fmt: skip
HOSTILE = [f"{MARK}{number}{escape}{MARK}" for number, escape in enumerate(ESCAPES)]
LINE = "".join(ESCAPES[:16])
"""Many control characters in a short text."""
KDISSECT = [sys.executable, "-m", "dissector.cli.main"]


def exchange(
    api: str, version: int, request: dict[str, object], response: dict[str, object], number: int
) -> list[Turn]:
    request_frame = dissector.encode_request(api, version, request, correlation_id=number, client_id=LINE)
    return [
        Turn(True, request_frame),
        Turn(False, dissector.encode_response(api, version, response, correlation_id=number)),
    ]


def hostile_turns() -> list[Turn]:
    """Every kind of word that a wire may have."""
    raw = [word.encode("utf-8", "surrogateescape") for word in HOSTILE]
    records = [{"key": each, "value": each, "headers": [{"key": LINE, "value": each}]} for each in raw]
    batch = {"batches": [], "unknown": {"data": batch_bytes({"records": records}).hex()}}
    partitions = [{"index": 0, "records": batch}]
    errors = [{"batch_index": 0, "batch_index_error_message": LINE}]
    responses = [{"index": 0, "error_code": 1, "base_offset": 0, "log_append_time_ms": -1, "log_start_offset": 0,
                  "record_errors": errors, "error_message": LINE}]  # fmt: skip
    brokers = [{"node_id": number, "host": word, "port": 9092, "rack": word} for number, word in enumerate(HOSTILE)]
    topics = [{"error_code": 3, "name": word, "is_internal": False, "partitions": []} for word in HOSTILE]
    metadata = {"brokers": brokers, "cluster_id": LINE, "controller_id": 1, "topics": topics}
    join = {"group_id": LINE, "session_timeout_ms": 1, "rebalance_timeout_ms": 1, "member_id": LINE,
            "protocol_type": LINE, "protocols": [{"name": LINE, "metadata": raw[0]}]}  # fmt: skip
    joined = {"error_code": 27, "generation_id": 1, "protocol_name": LINE, "leader": LINE, "member_id": LINE,
              "members": [{"member_id": LINE, "metadata": raw[1]}]}  # fmt: skip
    offers = {"error_code": 0, "api_keys": [{"api_key": 3, "min_version": 0, "max_version": 13}]}
    software = {"client_software_name": LINE, "client_software_version": LINE}
    names = [{"name": word} for word in HOSTILE]
    failed = {"throttle_time_ms": 0, "error_code": 15, "error_message": LINE, "node_id": 1, "host": LINE, "port": 1}
    return [
        *exchange("ApiVersions", 3, software, offers | {"throttle_time_ms": 0}, 0),
        *exchange("Metadata", 2, {"topics": names}, metadata, 1),
        *exchange("Produce", 8, {"transactional_id": LINE, "acks": -1, "timeout_ms": 1, "topic_data": [
            {"name": LINE, "partition_data": partitions}]}, {"responses": [
                {"name": LINE, "partition_responses": responses}], "throttle_time_ms": 9}, 2),
        *exchange("FindCoordinator", 1, {"key": LINE, "key_type": 0}, failed, 3),
        *exchange("JoinGroup", 1, join, joined, 4),
        *exchange("SaslHandshake", 1, {"mechanism": LINE}, {"error_code": 33, "mechanisms": HOSTILE[:9]}, 5),
        *exchange("SaslAuthenticate", 0, {"auth_bytes": raw[3]},
                  {"error_code": 58, "error_message": LINE, "auth_bytes": raw[4]}, 6),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A capture of it, whose own name is hostile too."""
    folder = tmp_path_factory.mktemp("hostile")
    path = Path(capture_of(folder, conversation(hostile_turns())))
    return str(path.rename(folder / f"\x1b]0;{MARK}\x07\u202e[red].pcap"))


def ran(*words: str) -> str:
    """What a command shows on a terminal; that its sequences are ours alone."""
    output = Output.of(run_on_terminal(KDISSECT[-1], words))
    assert not [each for each in output.sequences if MARK in each]
    # Colours, and the lines of progress that come and go.
    assert not [each for each in output.sequences if not re.fullmatch(r"\x1b\[(\d*(;\d+)*m|\?25[hl]|\d*[AKJ])", each)]
    assert "Traceback" not in output.text
    return output.text


SHOWN = [
    ("show",), ("show", "-f", "tree"), ("show", "-f", "csv"), ("show", "-f", "json"), ("stats",),
    ("records",), ("records", "-f", "json"), ("records", "-f", "csv"), ("records", "--fields", "key,value,headers"),
    ("stats", "--by", "topic"), ("stats", "-f", "json"),
    ("show", "--fields", "client_id,request.body.topics.name,response.body.topics.name"),
    ("export", "-f", "transcript", "--show-secrets", "-w", "-"), ("export", "-f", "json", "-w", "-"),
    ("export", "-f", "pytest", "--show-secrets", "-w", "-"),
    ("export", "-f", "mermaid", "-w", "-"), ("export", "-f", "svg", "-w", "-"), ("export", "-f", "command", "-w", "-"),
]  # fmt: skip


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_printed_text_is_harmless(words: tuple[str, ...], hostile: str) -> None:
    command, *options = words
    printed = ran(command, hostile, *options)
    assert MARK in printed or MARK.encode().hex() in re.sub(r"\s", "", printed)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_printed_comparison_is_harmless(form: str, hostile: str, tmp_path: Path) -> None:
    other = capture_of(tmp_path, conversation(hostile_turns()[2:]))
    assert MARK in ran("diff", hostile, other, "--format", form)


def test_text_of_the_wire_starts_no_line(hostile: str) -> None:
    with dissector.open(hostile) as capture:
        rows = len(list(capture.exchanges()))
    assert len(ran("show", hostile).splitlines()) == rows + 1
    assert len(ran("show", hostile, "-f", "json").splitlines()) == rows
    lines = ran("show", hostile, "--fields", "client_id,api,request.body.topics.name").splitlines()
    assert [line.count("\t") for line in lines] == [2] * rows


@pytest.mark.parametrize(
    "words",
    [("show", "-Y", f"topic == '\x1b[{MARK}m"), ("show", "--fields", f"\x1b]0;{MARK}\x07"), ("show", "\x9b31337m"),
     ("explain", f"\x1b[{MARK}m"), ("export", "--rows", "\x1b[31337m", "-w", "x.txt"), ("probe", f"\x1b[{MARK}m:1")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_error_messages_have_no_escapes(words: tuple[str, ...], hostile: str) -> None:
    command, *rest = words
    files = [hostile] if command in ("show", "export") and not rest[0].startswith("\x9b") else []
    ran(command, *files, *rest)


def test_json_keeps_every_text_unchanged(hostile: str) -> None:
    lines = [json.loads(line) for line in ran("show", hostile, "-f", "json").splitlines()]
    [topics] = [line["response"]["body"]["topics"] for line in lines if line["api"] == "Metadata"]
    kept = [word for word in HOSTILE if word.isprintable() or "\udcff" not in word]
    assert [topic["name"] for topic in topics if "\\x" not in topic["name"]] == kept


PANES = (
    "\x1b[B" * 2, "G", "g", "j", "\r", "*", "j" * 12, "l", "jjj", "\t", "lljj", "r", "\t", "e", "E", "[", "]", "?",
    "\x1b", "o", "\x1b", "L", "\x1b", "/", "client_id == 'x", "\x1b", "z", "\x1b", "v", "t", "T", "c", "m", "y", "v",
    "\x10", "\x1b", "\\", "+", "-", "\x06", MARK, "\r", "\x1b",
)  # fmt: skip
"""Keys for every pane and dialog; unbound keys do nothing."""


TWO_SIDES = (
    "jj", "y", "\r", "n", "N", "\t", "=", "j", "y", "\t", "l", "\t", "r", "v", "v", "G", "=", "i", "\x1b", " ", "g",
    " ", "o", "q", "s", "?", "\x1b", "\x10", "\x1b", "b",
)  # fmt: skip
"""Keys for all of the diff screen."""


def driven(its: Terminal, panes: tuple[str, ...] = PANES) -> Output:
    """Everything that the screen wrote while it was used."""
    for keys in panes:
        its.press(keys)
        if its.process.poll() is not None:
            break
    its.rest(1, 10)  # on a slow machine it is in the middle of a sequence
    output = Output.of(its.written)
    assert not [each for each in output.sequences if MARK in each]
    assert "Traceback" not in output.text
    return output


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [(120, 40), (60, 20)], ids=str)
def test_the_screen_is_harmless(size: tuple[int, int], hostile: str) -> None:
    """In `make exhaustive` the screen of live packets, below, goes through the same keys."""
    with terminal([*KDISSECT, hostile], columns=size[0], lines=size[1]) as its:
        its.until(MARK)
        output = driven(its)
        assert its.process.poll() is None, output.text[-500:]
    assert MARK in output.text
    # A pointer's shape, and what is yanked, in base64: no title.
    assert not [each for each in output.sequences if re.match(r"\x1b\](?!22;|52;c;[A-Za-z0-9+/=]*[\x07\x1b])", each)]


@pytest.mark.long
def test_a_comparison_on_the_screen_is_harmless(hostile: str, tmp_path: Path) -> None:
    other = capture_of(tmp_path, conversation(hostile_turns()[2:]))
    with terminal([*KDISSECT, "diff", hostile, other]) as its:
        its.until("difference")
        output = driven(its, TWO_SIDES)
        assert its.process.poll() is None, output.text[-500:]
    assert MARK in output.text


@pytest.fixture
def talker() -> Iterator[int]:
    """A server that says hostile things to whoever talks; its port."""
    answers = {turn.data[4:8]: turn.data for turn in hostile_turns() if not turn.from_client}

    def answer(connection: socket.socket) -> None:
        while True:
            connection.sendall(answers[frame(connection)[4:8]])

    with serving(answer) as address:
        yield int(address.rpartition(":")[2])


def talk(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for turn in hostile_turns():
            if turn.from_client:
                client.sendall(turn.data)
                frame(client)


LIVE = ("o", "\x1b", "e", "\r", "r", "?", "\x1b")
"""Keys for the overview, list, fields, bytes and a dialog."""


@needs_rights
@pytest.mark.parametrize(
    "panes",
    [None, pytest.param(LIVE, marks=pytest.mark.long), pytest.param(PANES, marks=pytest.mark.exhaustive)],
    ids=["text", "screen", "all of it"],
)
def test_live_output_is_harmless(panes: tuple[str, ...] | None, talker: int) -> None:
    text = panes is None
    with terminal([*KDISSECT, "live", "-p", str(talker), *(["--text"] if text else [])]) as its:
        its.until("on lo, port")
        thread = threading.Thread(target=talk, args=(talker,), daemon=True)
        thread.start()
        its.until(MARK if text else "SaslAuthenticate")  # the list itself shows errors first, and no client id here
        thread.join()
        if text:
            its.rest(1)
            its.process.send_signal(signal.SIGINT)
            its.rest()  # to its end: what came before may end within a character
        output = Output.of(its.written) if panes is None else driven(its, panes)
    assert not [each for each in output.sequences if MARK in each]
    assert MARK in output.text


@cases("escape", [word for word in ESCAPES if re.search(r"[\x00-\x08\x1b\x7f-\x9f\u2028-\u202e]", word)])
def test_the_test_terminal_notices_escapes(escape: str) -> None:
    """Each of the words, given to the terminal as it is, is found."""
    try:
        output = Output.of(f"some words {escape} and more".encode("utf-8", "surrogatepass"))
    except (NotATerminalsError, UnicodeDecodeError):
        return
    assert [each for each in output.sequences if MARK in each]


def opened_values() -> tuple[dict[str, str], list[bytes]]:
    """Schemas by file name, and values that they open: JSON, Avro and Protobuf of hostile words."""
    words = [word.encode("utf-8", "surrogateescape") for word in HOSTILE]
    avro = {"type": "record", "name": "Order", "fields": [
        {"name": "text", "type": "string"}, {"name": "by_name", "type": {"type": "map", "values": "bytes"}},
    ]}  # fmt: skip
    proto = 'syntax = "proto2"; message Order { optional string text = 1; map<string, bytes> by_name = 2; }'
    values = [json.dumps({word: [word]}, ensure_ascii=False).encode("utf-8", "replace") for word in HOSTILE]
    for each in words:
        sized = avro_size(len(each)) + each
        values.append(b"\x00\x00\x00\x00\x07" + sized + b"\x02" + sized + sized + b"\x00")
        text = each.decode("utf-8", "replace").encode()[:100]
        field = bytes([len(text)]) + text
        entry = b"\x0a" + field + b"\x12" + field
        framed = b"\x0a" + field + b"\x12" + avro_size(len(entry), zigzag=False) + entry
        values.append(b"\x00\x00\x00\x00\x08\x00" + framed)
    return {"7.avsc": json.dumps(avro), "8.proto": proto}, values


def avro_size(number: int, *, zigzag: bool = True) -> bytes:
    """A length as a varint."""
    number, found = number << zigzag, b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A capture of records with such values, and the folder with their schemas."""
    folder = tmp_path_factory.mktemp("opened")
    schemas, values = opened_values()
    for name, text in schemas.items():
        (folder / name).write_text(text)
    records = [{"key": each, "value": each, "headers": [{"key": LINE, "value": each}]} for each in values]
    batch = {"batches": [], "unknown": {"data": batch_bytes({"records": records}).hex()}}
    request = {"transactional_id": None, "acks": -1, "timeout_ms": 1, "topic_data": [
        {"name": LINE, "partition_data": [{"index": 0, "records": batch}]}
    ]}  # fmt: skip
    turns = exchange("Produce", 8, request, {"responses": [], "throttle_time_ms": 0}, 1)
    return capture_of(folder, conversation(turns)), str(folder)


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_opened_values_are_harmless(form: str, opened: tuple[str, str]) -> None:
    capture, schemas = opened
    printed = ran("records", capture, "--schemas", schemas, "-f", form)
    assert printed.count(MARK) > 3 * len(HOSTILE)
    assert len(printed.splitlines()) == 3 * len(HOSTILE) + (form == "csv")
    if form == "json":
        formats = [json.loads(line)["value_format"] for line in printed.splitlines()]
        assert formats.count("avro") == formats.count("protobuf") == formats.count("json") == len(HOSTILE)


@pytest.mark.long
def test_opened_values_on_the_screen_are_harmless(opened: tuple[str, str]) -> None:
    capture, schemas = opened
    with terminal([*KDISSECT, "open", capture, "--schemas", schemas], columns=120, lines=40) as its:
        its.until("100%")
        keys = ("R", "j" * 9, "j" * 9, "j" * 9, "2", "6", "G", "j" * 12, "b", "b", "\t", "\x1b[6~", "\t", "G", "z",
                "\x1b", "\x06", "31337", "\r", "/", "record.value.", "\x1b", "?", "\x1b", "\r", "jj", "q")  # fmt: skip
        output = driven(its, keys)
    assert MARK in output.text
    assert "avro" in output.text
    assert "protobuf" in output.text
