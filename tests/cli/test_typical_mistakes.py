"""Typical mistakes at the command line: each is one plain line that says what is wrong and what to do, and exit code 2.

All run in this process, as none of them gets as far as to do anything."""

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.main import get_command

from dissector.cli.every_command import app
from dissector.core.files import write_reason
from tests.cases import cases
from tests.conftest import PCAPS

COMMAND: Final = get_command(app)
MISTAKES: Final = {
    # options of other programs, of other commands, of other spellings
    "show x --fitler a": "no such option: --fitler; did you mean --filter; see kdissect show --help",
    "show x -y a": "no such option: -y; did you mean -Y; see kdissect show --help",
    "show x --json": "no such option: --json; did you mean --format json; see kdissect show --help",
    "show x -n 5": "no such option: -n; did you mean --limit; see kdissect show --help",
    "show -r x": "no such option: -r; FILE… is named without an option; see kdissect show --help",
    "ingest x -o t": "no such option: -o; did you mean --out; see kdissect ingest --help",
    "show x --topic orders": "no such option: --topic; did you mean -Y 'topic == …'; see kdissect show --help",
    "show x --client-id a": "no such option: --client-id; did you mean -Y 'client_id == …'; see kdissect show --help",
    "diff x y --rows 3": "no such option: --rows; export has it; see kdissect diff --help",
    "stats x --ring 3": "no such option: --ring; see kdissect stats --help",
    "show x --timezone Mars": "no such option: --timezone; see kdissect show --help",
    "--hlep": "no such option: --hlep; did you mean --help; see kdissect --help",
    "-V": "no such option: -V; did you mean --version; see kdissect --help",
    # values that are missing or wrong
    "show x -Y": "-Y needs FILTER; see kdissect show --help",
    "show x --fields": "--fields needs A,B,C; see kdissect show --help",
    "show x --limit ten": "--limit: 'ten' is not a number; see kdissect show --help",
    "show x --limit 0": "--limit: 0 is less than 1; see kdissect show --help",
    "show x --port 65536": "--port: 65536 is not a number from 0 to 65535; see kdissect show --help",
    "live -p 0": "--port: 0 is not a number from 1 to 65535; see kdissect live --help",
    "show x -f yaml": "--format: 'yaml' is not text, tree, json or csv; see kdissect show --help",
    "show x -f JSON": "--format: 'JSON' is not text, tree, json or csv; did you mean json; see kdissect show --help",
    # arguments too many or in the wrong place
    "probe localhost 9092": "unexpected argument: 9092; write HOST:PORT; see kdissect probe --help",
    "proxy localhost 9092": "9092: a port alone is no address; write HOST:9092",
    "live pytest tests": "unexpected argument: pytest tests; an interface needs -i, a port -p; a command stands "
    "behind --: kdissect live -- pytest tests; see kdissect live --help",
    "proxy b:1 sh tests": "sh is a command: put it after --: kdissect proxy b:1 -- sh tests",
    "tables lst a": "no such command 'lst'; did you mean list; see kdissect tables --help",
    "replay b:1 orders.pcapng": "b:1: no such file or directory; the capture comes first, then the broker",
    # what a shell splits, and what is no file
    "show orders.pcapng -Y api == Produce": "==: no such file or directory; a filter with spaces needs quotes: "
    "-Y 'api == Produce'",
    "show orders.pcapng 'api == Produce'": "api == Produce: no such file or directory; a filter stands behind -Y: "
    "-Y 'api == Produce'",
    "show orders.pcapng --fields api, latency": "latency: no such file or directory; separate field names with "
    "commas: --fields api,latency",
    "show orders.pcapng --fields ,": "--fields needs field names: conn,api,latency",
    "show '*.pcap'": "*.pcap: no such file or directory; no file matches this pattern",
    "show b:9092": "b:9092: no such file or directory; for a broker: kdissect probe b:9092, or kdissect proxy b:9092",
    "show orders.pcapgn": "orders.pcapgn: no such file or directory; did you mean orders.pcapng",
    "show orders": "orders: no such file or directory; did you mean orders.pcapng",
    "show none.pcapng": "none.pcapng: no such file or directory",
    "show samples/orders.pcapng": "samples/orders.pcapng: no such file or directory; kdissect samples samples puts the "
    "samples there",
    "show ''": "'': no such file or directory",
    'encode {kind:"exchange"}': "{kind:exchange}: no such file or directory; JSON is read from a file or from a pipe: "
    "echo '{…}' | kdissect encode",
    # files of other kinds
    "show image.png": "image.png: a PNG image, not a capture",
    "encode orders.pcapng": "orders.pcapng: line 3: not JSON: encode takes what kdissect show --format json prints",
    "encode unquoted.json": "unquoted.json: line 1: not JSON: column 2: unexpected character, expected a string key; "
    "JSON has its names in double quotes: in a shell, the whole line stands in single ones",
    "encode wrong.json": "wrong.json: line 1: api: no API is called 'Metdata'; did you mean Metadata or UpdateMetadata",
    "tables list absent": "absent: no such folder",
    "tables list folder": "folder: no tables found",
    # addresses
    "proxy localhost:kafka": "localhost:kafka: 'kafka' is not a port from 1 to 65535",
    "probe localhost:99999": "localhost:99999: '99999' is not a port from 1 to 65535",
    "proxy http://b": "http://b: a broker is HOST:PORT, without http://",
    "probe ssl://b:9093": "ssl://b:9093: probe connects without TLS and without a login",
    "probe a:1,b:2": "a:1,b:2: one address is expected, not several",
    "proxy b --listen 9092x": "'9092x' is not a port",
    "proxy b --listen localhost": "localhost: the port is missing",
    "proxy b --listen 99999": "99999 is not a port from 1 to 65535",
    "serve orders.pcapng --listen 127.0.0.1:TAKEN": "can't listen on 127.0.0.1:TAKEN: address already in use; choose "
    "another port with --listen",
    # places that can't be written
    "export orders.pcapng -w absent/x.pcapng": "absent/x.pcapng: there is no folder absent",
    "diff orders.pcapng --save-baseline absent/x": "absent/x: there is no folder absent",
    "samples orders.pcapng": "orders.pcapng/orders.pcapng: orders.pcapng is a file, not a folder",
    # names
    "check orders.pcapng --ignore throttle": "--ignore: 'throttle' is not a rule; did you mean throttle-time",
    "explain Prodcue": "nothing is called 'Prodcue'; did you mean Produce, ProduceRequest, produce-magic or "
    "producer-epoch",
    "explain Produce 99": "Produce has no version 99; it has 0-13",
}
"""The words, split as a shell does, and the line."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "orders.pcapng").symlink_to(PCAPS / "java.pcapng")
    (folder / "folder").mkdir()
    (folder / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(60))
    (folder / "unquoted.json").write_text("{kind: exchange}\n")
    (folder / "wrong.json").write_text('{"kind": "exchange", "api": "Metdata", "api_version": 1, "request": {}}\n')
    return folder


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@cases(("typed", "line"), MISTAKES.items())
def test_a_mistake_is_one_line_that_says_what_to_do(
    typed: str, line: str, folder: Path, taken: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        COMMAND.main(shlex.split(typed.replace("TAKEN", str(taken))))
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err) == (2, "", f"kdissect: {line}\n".replace("TAKEN", str(taken)))


def test_what_can_not_be_written_names_the_part_that_is_wrong(tmp_path: Path) -> None:
    missing = FileNotFoundError(2, "No such file or directory")
    (tmp_path / "file").touch()
    assert write_reason(f"{tmp_path}/a/b", missing) == f"there is no folder {tmp_path}/a"
    assert write_reason(f"{tmp_path}/file/b", NotADirectoryError(20, "Not a directory")).endswith(
        "/file is a file, not a folder"
    )
    assert write_reason(f"{tmp_path}/b", PermissionError(13, "Permission denied")) == "permission denied"
    assert write_reason(f"{tmp_path}/{'x' * 300}/b", OSError(36, "File name too long")) == "file name too long"
