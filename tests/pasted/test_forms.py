"""Bytes written in any form come back, whatever stands around them; what is no message of Kafka is left alone."""

# ruff: noqa: E501  # what people paste has long lines

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dissector import encode_request, encode_response
from dissector.pasted.numbers import number_lists
from dissector.pasted.plain_text import Lines
from dissector.pasted.reading import PastedText, read_bytes
from tests.cases import cases
from tests.conftest import some_of
from tests.needs import needs
from tests.pasted.forms import AROUND, FORMS, LAYOUTS, shown
from tests.pasted.more_forms import LOGGED, MORE_FORMS

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=30)


def found(text: str | bytes) -> PastedText:
    data = text if isinstance(text, bytes) else text.encode()
    read = read_bytes(data)
    assert read is not None, data[:400].decode("utf-8", "replace")
    return read


def sent(read: PastedText) -> bytes:
    return b"".join(turn.data for turns in read.arrangement.turns.values() for turn in turns)


def sides(read: PastedText) -> list[tuple[bool, bytes]]:
    return [(turn.from_client, turn.data) for turns in read.arrangement.turns.values() for turn in turns]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request with names, numbers and counts of any kind."""
    client, number = draw(NAMES), draw(st.integers(0, (1 << 31) - 1))
    topics = draw(st.lists(NAMES, min_size=1, max_size=3))
    match draw(st.integers(0, 2)):
        case 0:
            body = {"client_software_name": "my-client", "client_software_version": "1.0"}
            return encode_request("ApiVersions", 3, body, correlation_id=number, client_id=client)
        case 1:
            named = [{"name": topic} for topic in topics]
            return encode_request("Metadata", 1, {"topics": named}, correlation_id=number, client_id=client)
        case _:
            body = {"replica_id": draw(st.integers(-1, 1 << 30)), "topics": [
                {"name": topic, "partitions": [{"partition_index": draw(st.integers(0, 999)), "timestamp": -1}]}
                for topic in topics
            ]}  # fmt: skip
            return encode_request("ListOffsets", 1, body, correlation_id=number, client_id=client)


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(FORMS))
@given(frame=requests(), around=st.sampled_from(sorted(AROUND)))
def test_a_request_in_any_form_comes_back(form: str, frame: bytes, around: str) -> None:
    assume(form != "cat -v" or b"^" not in frame)  # of it nobody can tell what it stands for
    text = AROUND[around](FORMS[form](frame))
    assert sent(found(text)) == frame, text


FRAME = encode_request(
    "Metadata", 1, {"topics": [{"name": "orders"}, {"name": "ord\\ers\n'\""}]}, correlation_id=7, client_id="café"
)
LONG = encode_request("Metadata", 1, {"topics": [{"name": "a" * 200}]}, correlation_id=7, client_id="café")


IN_LAYOUTS = (
    "xxd", "hexdump -C", "bare", "xxd -p", "spaces", "0x list", "C array", "Java", "vec!", "Python", "x escapes", "Buffer",
    "base64 of MIME",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_lines_that_programs_changed_are_put_right(layout: str) -> None:
    for form in IN_LAYOUTS:
        for frame in (FRAME, LONG):
            text = LAYOUTS[layout](FORMS[form](frame))
            assert sent(found(text)) == frame, (form, text)


BATCH = encode_request(
    "Produce", 3,
    {"acks": -1, "timeout_ms": 30000, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": {
        "batches": [{"records": [{"key": bytes(range(0, 256, 5)).hex(), "value": "00" * 40 + "3a20" * 9}]}],
    }}]}]},
    correlation_id=4, client_id="producer-1",
)  # fmt: skip
BLANKS = encode_request("FindCoordinator", 0, {"key": "  a key"}, correlation_id=32, client_id="  x")
FRAMES = {"long": LONG, "batch": BATCH, "blanks": BLANKS}


@pytest.mark.long
@cases("form", sorted(MORE_FORMS))
def test_further_forms_come_back(form: str) -> None:
    for name, frame in FRAMES.items():
        text = MORE_FORMS[form](frame)
        assert sent(found(text)) == frame, (name, text)


REQUEST = encode_request("Metadata", 1, {"topics": [{"name": "orders"}]}, correlation_id=7, client_id="rdkafka")
RESPONSE = encode_response(
    "Metadata", 1, {"brokers": [{"node_id": 1, "host": "kafka-1", "port": 9092}], "controller_id": 1, "topics": []},
    correlation_id=7,
)  # fmt: skip
MISTAKEN = ("a dump of colons", "wrapped hex with blanks")
"""Forms in which this response by itself also reads to the last byte as a message without its size, written otherwise."""
BOTH = "{}\n\n{}\n", "Request:\n{}\n\nResponse:\n{}\n", "-->\n{}\n<--\n{}\n"
"""Two messages, and what tells them apart."""


@pytest.mark.long
@cases("form", sorted({*FORMS, *MORE_FORMS}))
def test_two_messages_lone_ones_and_cut_ones_have_their_sides(form: str) -> None:
    """Two of these for each form: other forms have the others."""
    write, turn = (FORMS | MORE_FORMS)[form], len(form) % 3
    if form not in ("Lua", "OCaml"):  # decimals of this response are octal numbers too
        text = BOTH[turn].format(write(REQUEST), write(RESPONSE))
        assert sides(found(text)) == [(True, REQUEST), (False, RESPONSE)]
    if turn == 0 and form not in MISTAKEN:
        assert sides(found(write(RESPONSE))) == [(False, RESPONSE)]
    elif turn == 1:
        assert sides(found(write(REQUEST[4:]))) == [(True, REQUEST)]
    elif turn == 2 and not form.startswith("wrapped"):  # where it is cut, an indentation may be its last bytes
        assert sides(found(write(REQUEST[:-5])))[0] == (True, REQUEST[:-5])


@pytest.mark.long
@cases("layout", sorted(LOGGED))
def test_what_logs_and_chats_put_around_lines_is_no_byte(layout: str) -> None:
    for form in ("xxd", "xxd -p", "C array", "base64 of MIME", "ngrep -x", "Python"):
        frame = BATCH if form in ("xxd", "ngrep -x") else BLANKS if form == "xxd -p" else LONG
        text = LOGGED[layout](FORMS[form](frame))
        assert sent(found(text)) == frame, (form, text)


def test_blanks_behind_hex_take_no_time() -> None:
    hexes = " ".join([FRAME.hex(), "00" * 8] * 90)
    assert found(f"sent {hexes} --{'-' * 15_000}")  # a comment, for which blanks are read


def test_a_line_is_that_of_the_pasted_text() -> None:
    cut = f"I see:\n\n{FORMS['spaces'](LONG[:150])}"
    read = found(LAYOUTS["broken at 80"](cut))
    assert read.first_line == 3
    assert [words.partition(":")[0] for words in read.problems()] == ["line 3"]


def test_a_message_without_its_size_may_begin_like_one_with_it() -> None:
    body = {"acks": 1, "timeout_ms": 1000, "topic_data": []}
    frame = encode_request("Produce", 7, body, correlation_id=2, client_id="producer-1")
    read = found(FORMS["bare"](frame[4:]))  # 00000007: of API 0, version 7, or a size
    assert (sent(read), read.problems()) == (frame, [])


def test_what_a_text_repeats_is_bounded() -> None:
    many = "[0, 0, 0, 49, 0, 18, 0, 3 <repeats 999999999 times>]\n"
    read_bytes((many * 20).encode())
    assert sum(len(each.data) for each in number_lists(Lines(many * 20))) <= (1 << 20) + 8 * 20
    for times in (0, 9):
        read_bytes(f'[0, 0, 0, 49, 0, 18, 0, 3, "" <repeats {times} times>]'.encode())


def test_an_arrow_to_the_left_is_no_comment() -> None:
    response = encode_response("Heartbeat", 0, {"error_code": 27}, correlation_id=7)
    read = found(f"--> {FORMS['Go'](FRAME)}\n<-- {FORMS['Go'](response)}\n")
    assert sides(read) == [(True, FRAME), (False, response)]


def test_offsets_of_a_dump_without_its_first_rows_are_no_bytes() -> None:
    for form in ("xxd", "hexdump -C", "od -Ax -tx1", "Wireshark", "tcpdump -X of a stream"):
        for missing in (1, 3):
            text = "\n".join(FORMS[form](LONG).split("\n")[missing:])
            read = read_bytes(text.encode())
            assert read is None, (form, read.arrangement.form)


def test_the_text_column_of_rows_without_offsets_is_no_hex() -> None:
    rows = (LONG[at : at + 16] for at in range(0, len(LONG), 16))
    assert sent(found("\n".join(f"{row.hex(' '):<47}  {shown(row)}" for row in rows))) == LONG


PROGRAMS: dict[str, list[list[str]]] = {
    "xxd": [
        [], ["-g1", "-u"], ["-g8"], ["-c", "7"], ["-b"], ["-e"], ["-p"], ["-i"], ["-ps", "-c", "0"], ["-a"],
        ["-o", "256", "-g1"], ["-d"],
    ],
    "hexdump": [[], ["-C"], ["-Cv"], ["-x"], ["-b"], ["-c"], ["-o"], ["-d"]],
    "od": [
        [], ["-Ax", "-tx1"], ["-Ax", "-tx1z", "-v"], ["-Ad", "-tx1"], ["-An", "-tx1"], ["-tx1"], ["-x"], ["-tx4"], ["-tx8"],
        ["-b"], ["-c"], ["-tu1"], ["-td1"],
    ],
    "base64": [[], ["-w0"]],
    "cat": [["-v"]],
}  # fmt: skip
"""What programs are asked for."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_programs_print_comes_back(program: str) -> None:
    needs(program)
    for options in PROGRAMS[program]:
        for frame in (FRAME, LONG):
            text = subprocess.run([program, *options], input=frame, capture_output=True, check=True).stdout
            if program == "cat" and b"\n" in frame:
                continue  # a line feed is a line feed
            if options == ["-An", "-tx1"] and frame is LONG:
                continue  # its * has no offset that says what it stands for
            assert sent(found(text)) == frame, (options, text.decode())


LANGUAGES = {
    "python3": [
        "-c", "import sys; print(sys.stdin.buffer.read())",
        "-c", "import sys; print(list(sys.stdin.buffer.read()))",
    ],
    "node": [
        "-e", "console.log(require('fs').readFileSync(0).toString('hex'))",
        "-e", "console.log(JSON.stringify(require('fs').readFileSync(0)))",
        "-e", "console.log(new Uint8Array(require('fs').readFileSync(0)))",
        "-e", "console.log(JSON.stringify(require('fs').readFileSync(0).toString('latin1')))",
        "-e", "console.log(require('fs').readFileSync(0).toString('base64url'))",
    ],
    "perl": ["-e", "undef $/; print unpack('H*', <STDIN>)"],
}  # fmt: skip
"""Options of interpreters and programs, one behind the other."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_languages_print_comes_back(language: str) -> None:
    needs(language)
    words = LANGUAGES[language]
    for option, program in zip(words[::2], words[1::2], strict=True):
        text = subprocess.run([language, option, program], input=FRAME, capture_output=True, check=True).stdout
        assert sent(found(text)) == FRAME, program


@cases("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_texts_of_any_encoding_are_read(encoding: str) -> None:
    assert sent(found(FORMS["xxd"](FRAME).encode(encoding))) == FRAME


def test_messages_as_a_file_of_bytes_are_read() -> None:
    assert sent(found(FRAME + LONG)) == FRAME + LONG
    assert read_bytes(FRAME[:9]) is None
    assert read_bytes(bytes(1000)) is None


NEAR_MISSES = {
    "a log": "2026-11-26 10:15:30,123 [main] INFO  o.a.k.c.NetworkClient - node 1 disconnected, id 0x7f00aa12\n" * 50,
    "a log of sizes": "".join(f"00:00:00.{n:03d} 00 00 00 {n} bytes sent, 12 00 received\n" for n in range(100)),
    "hashes": "".join(f"{n * 0x9E3779B97F4A7C15 % (1 << 128):032x}  file{n}\n" for n in range(1, 60)),
    "a machine's id": "00d3a7c2f81b4e6a9c0b5d7e1f2a3b4c\n",
    "UUIDs": "".join(f"00000000-0000-4000-8000-{n:012x}\n" for n in range(60)),
    "a UUID": "0000001c-000a-0000-0000-002000032020\n",
    "a log of JSON": "".join(f'{{"ts":"2026-11-26T10:15:30Z","level":"info","msg":"sent {n} bytes to node 0"}}\n' for n in range(60)),
    "a list of ports": ", ".join(str(port) for port in (22, 25, 53, 80, 110, 143, 0, 0, 0, 21, 23, 111, 135, 139, 9092)),
    "numbers in quotes": '["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]\n',
    "a diff": "diff --git a/x.py b/x.py\nindex 0000000..1a2b3c4 100644\n@@ -0,0 +1,3 @@\n+A = [0, 0, 0, 12, 1, 2, 3, 4, 5, 6]\n+B = b'\\x00\\x00\\x00\\x04\\x01\\x02'\n-old 00 00 00 31 ff\n",
    "MAC addresses": "".join(f"eth{n}: 00:00:00:31:00:{n:02x}\n" for n in range(60)),
    "numbers": "\n".join(",".join(str(n * k % 256) for k in range(12)) for n in range(60)),
    "zeros": "0 " * 500,
    "a table": "".join(f"{n},{n * n},{n / 7:.4f},0x{n:02x}\n" for n in range(100)),
    "a key log": "".join(f"CLIENT_RANDOM {n:064x} {n * 31:096x}\n" for n in range(1, 20)),
    "tcpdump": "".join(f"10:15:30.{n:06d} IP 10.0.0.1.40001 > 10.0.0.2.9092: Flags [P.], seq 1:54, length 53\n" for n in range(60)),
    "a certificate": "-----BEGIN CERTIFICATE-----\n" + "AAAAMQBTAXMAAABlAA1hZG1pbmNsaWVudC0xABJhcGFjaGUta2Fma2EtamF2YQYy\n" * 12 + "-----END CERTIFICATE-----\n",
    "a dump of TLS": "00000000  16 03 01 00 31 01 00 00  2d 03 03 00 00 00 31 00  |....1...-.....1.|\n00000010  12 00 03 00 00 00 65 00  0d 61 64 6d 69 6e 63 6c  |......e..admincl|\n",
    "a dump of zeros": "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n00001000\n",
    "an array": "static const int table[] = {0, 0, 0, 49, 0, 18, 0, 3, 0, 0, 0, 101, 1, 2, 3, 4, 5, 6};\n",
    "a keyboard": "static const char *map = \"\\x00\\x01\\x02\\x03\\x04\\x05\\x06\\x07\\x08\\x09\\x0a\\x0b\\x0c\";\n",
    "code": 'if (a >= 0 && b[0] == 0x00) { return "\\0\\0\\0\\0"; }\n' * 40,
    "prose": "Deal or no deal, a bad cafe faced a decade of beef; add 00 eggs and 12 face feeds.\n" * 20,
    "quoted prose": "> add\n> dead beef 00\nI see.\n",
    "a form without bytes": "Follow: tcp,ascii\nNode 0: 127.0.0.1:58120\n53\n...1..........adminclient-1..apache-kafka-java.4.3.1.\n",
}  # fmt: skip


@pytest.mark.long
@cases("name", sorted(NEAR_MISSES))
def test_text_without_messages_is_left_alone(name: str) -> None:
    read = read_bytes(NEAR_MISSES[name].encode())
    assert read is None, (read.arrangement.form, read.arrangement.best)


def sources() -> list[Path]:
    root = Path(__file__).parents[2]
    return [
        path
        for top in ("dissector/core", "dissector/tls", "tui/features", "tools/benchmarks")
        for path in sorted((root / top).rglob("*.py"))
        if path.name != "costly_sessions.py"  # which writes messages
    ]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("step", some_of([1, 8], 8))
def test_our_own_sources_are_no_messages(step: int) -> None:
    read = [path.name for path in sources()[::step] if read_bytes(path.read_bytes()) is not None]
    assert not read


@given(st.text(st.sampled_from("0123456789abcdefx\\\"' \n\t|:,<>[]()*.-%^@AZ/=#;"), max_size=400))
def test_any_text_is_survived(text: str) -> None:
    read = read_bytes(text.encode())
    if read is not None:
        assert read.arrangement.places
        assert all(words.startswith("line ") for words in read.problems())


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    read_bytes(data)
