"""`kdissect schema` as a user meets it, in a data folder of its own."""

import json
import os
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import KDISSECT
from tests.forked import run_module
from tests.protocol.schema.releases import haunt, jar, newer_heartbeat, schema
from tests.traffic import Turn, capture_of, conversation, request, response

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = os.environ | {"NO_COLOR": "1", "XDG_DATA_HOME": str(tmp_path / "data")}

    def kdissect(*words: str | Path) -> subprocess.CompletedProcess[str]:
        done = run_module(KDISSECT[-1], [*map(str, words)], environment, kind="unread")
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return kdissect


@pytest.mark.long
def test_what_is_imported_is_decoded_everywhere_until_it_is_removed(run: Run, tmp_path: Path) -> None:
    request_frame = request(7, api_key=201, version=0, body=b"\x00\x05manor")
    capture = capture_of(tmp_path, conversation([Turn(True, request_frame), Turn(False, response(7, b"\x00\x03"))]))

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("show", capture, "-f", "json").stdout.splitlines()[0])
        return found

    assert shown()["api"] == "API 201"
    assert run("explain", "Haunt").returncode == 2
    done = run("schema", "import", jar(tmp_path / "a.jar", haunt() + newer_heartbeat()))
    assert (done.returncode, done.stderr) == (0, "")
    assert "9.9.0: 4 messages" in done.stdout
    assert "HauntRequest v0-1; HauntResponse v0-1; HeartbeatRequest v5; HeartbeatResponse v5" in done.stdout
    assert shown()["api"] == "Haunt"
    assert shown()["request"]["body"] == {"house": "manor"}
    assert shown()["response"]["body"] == {"error_code": 3}
    page = run("explain", "haunt", "1").stdout
    assert "ghosts: added, COMPACT_ARRAY of INT32, may be null" in page
    assert "in Kafka 9.9.0" in page
    assert "member_uuid: added, UUID" in run("explain", "HeartbeatRequest").stdout
    assert "9.9.0    imported  4" in run("schema", "list").stdout
    assert run("schema", "import", tmp_path / "a.jar").stdout.endswith("nothing in it is new\n")
    assert run("schema", "remove", "9.9.0").returncode == 0
    assert shown()["api"] == "API 201"
    again = run("schema", "remove", "9.9.0")
    assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)


def test_a_folder_is_all_of_kafkas_jars_in_it(run: Run, tmp_path: Path) -> None:
    libs = tmp_path / "libs"
    libs.mkdir()
    assert run("schema", "import", libs).stderr == f"kdissect: {libs}: not a file, and no folder with kafka*.jar\n"
    jar(libs / "kafka-clients-9.9.0.jar", haunt())
    jar(libs / "kafka-group-coordinator-9.9.0.jar", newer_heartbeat())
    (libs / "jackson-core-2.16.2.jar").write_bytes(b"not ours")
    done = run("schema", "import", libs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "9.9.0: 4 messages" in done.stdout


def test_imported_versions_have_their_headers_and_layouts(run: Run, tmp_path: Path) -> None:
    """A flexible version of a new API, and a new version of one that the tables have."""
    haunted = request(1, api_key=201, version=1, body=b"\x00" + b"\x06manor" + b"\x02\x00\x00\x00\x07" + b"\x00")
    beat = b"\x00" + b"\x06sales" + bytes(range(16)) + b"\x00\x00\x00\x03" + b"\x00" + b"\x00"
    turns = [
        Turn(True, haunted), Turn(False, response(1, b"\x00" + b"\x00\x03" + b"\x00")),
        Turn(True, request(2, api_key=12, version=5, body=beat)),
        Turn(False, response(2, b"\x00" + bytes(4) + b"\x00\x19" + b"\x00")),
    ]  # fmt: skip
    capture = capture_of(tmp_path, conversation(turns))
    run("schema", "import", jar(tmp_path / "a.jar", haunt() + newer_heartbeat()))
    first, second = (json.loads(line) for line in run("show", capture, "-f", "json").stdout.splitlines())
    assert first["request"]["body"] == {"house": "manor", "ghosts": [7]}
    assert first["response"]["body"] == {"error_code": 3}
    assert second["request"]["body"] == {
        "group_id": "sales", "member_uuid": "AAECAwQFBgcICQoLDA0ODw", "generation_id": 3, "group_instance_id": None,
    }  # fmt: skip
    assert second["response"]["body"] == {"throttle_time_ms": 0, "error_code": 25}
    assert not [f for f in (*first["findings"], *second["findings"]) if f["code"] != "error-response"]


@pytest.mark.long
def test_the_exit_code_says_whether_two_releases_differ(run: Run, tmp_path: Path) -> None:
    new = jar(tmp_path / "b.jar", haunt() + newer_heartbeat())
    old = jar(tmp_path / "a.jar", [schema("HeartbeatRequest"), schema("HeartbeatResponse")])
    done = run("schema", "diff", old, new)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a.jar and b.jar  2 and 4 messages, 4 differ",
        "  added    HauntRequest  v0-1",
        "  added    HauntResponse  v0-1",
        "  changed  HeartbeatRequest  v0-4 became v0-5",
        "      v5 is new: member_uuid: added, UUID",
        "      v5 is new: member_id: removed (was COMPACT_STRING)",
        "  changed  HeartbeatResponse  v0-4 became v0-5",
        "      v5 is new: the same layout as the version before",
    ]
    assert "  removed  HauntRequest  v0-1" in run("schema", "diff", new, old).stdout
    assert run("schema", "diff", new, new).returncode == 0
    run("schema", "import", new)
    assert run("schema", "diff", "9.9.0", new).returncode == 0
    assert run("schema", "diff", "4.3.1", "4.4.0").returncode == 1
    assert run("schema", "diff", "4.4.0", "4.4.0").returncode == 0


def test_a_field_that_differs_in_the_same_version_is_reported(run: Run, tmp_path: Path) -> None:
    changed = schema("HeartbeatRequest")
    changed["fields"][0] |= {"nullableVersions": "1+"}
    changed["fields"][1] |= {"type": "int64"}
    paths = [jar(tmp_path / "a.jar", [schema("HeartbeatRequest")]), jar(tmp_path / "b.jar", [changed])]
    lines = run("schema", "diff", *paths).stdout.splitlines()
    assert "      v1: group_id: may be null" in lines
    assert "      v0: generation_id: INT32 became INT64" in lines
    assert "      v0: group_id: may be null" not in lines


def test_the_names_of_shipped_releases_are_taken_and_another_can_be_given(run: Run, tmp_path: Path) -> None:
    path = jar(tmp_path / "a.jar", haunt(), version="4.4.0")
    refused = run("schema", "import", path)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "4.4.0: is a release that is shipped with kdissect; use --name to choose another name" in refused.stderr
    assert run("schema", "import", path, "--name", "fork-1").returncode == 0
    assert "fork-1" in run("schema", "list").stdout


def not_zip(path: Path) -> None:
    path.write_bytes(b"not a zip file at all")


def cut(path: Path) -> None:
    path.write_bytes(jar(path, haunt()).read_bytes()[:-30])


def flipped(path: Path) -> None:
    data = bytearray(jar(path, haunt()).read_bytes())
    at = data.index(b"HauntRequest.json") + 40
    data[at : at + 20] = bytes(20)
    path.write_bytes(data)


def encrypted(path: Path) -> None:
    data = jar(path, haunt()).read_bytes()
    path.write_bytes(data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"))


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("common/message/Bomb.json", b" " * (64 << 20))


def many(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(2_001):
            archive.writestr(f"common/message/M{number}.json", "{}")


def large_directory(path: Path) -> None:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 1 << 30, 0, 0)
    path.write_bytes(bytes(1_000) + end)


def written(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("common/message/M.json", text)

    return write


def data_schema(**changes: object) -> Callable[[Path], None]:
    head = {"type": "data", "name": "Sample", "validVersions": "0", "flexibleVersions": "none", "fields": []}
    return written(json.dumps(head | changes))


def field(**changes: object) -> Callable[[Path], None]:
    return data_schema(fields=[{"name": "A", "type": "int32", "versions": "0+"} | changes])


def wide(count: int, versions: str) -> Callable[[Path], None]:
    fields = [{"name": f"F{n}", "type": "int8", "versions": "0+"} for n in range(count)]
    return data_schema(validVersions=versions, fields=fields)


def crowd(path: Path) -> None:
    """Messages that are each within their bounds."""
    fields = [{"name": f"F{n}", "type": "int8", "versions": "0+"} for n in range(200)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(10):
            head = {"type": "data", "name": f"M{n}", "validVersions": "0-99", "flexibleVersions": "none"}
            archive.writestr(f"common/message/M{n}.json", json.dumps(head | {"fields": fields}))


def blow_up(path: Path) -> None:
    """Structs that each hold the one below ten times: ten thousand million fields."""
    structs = [
        {"name": f"S{n}", "versions": "0+", "fields": [
            {"name": f"F{k}", "type": f"S{n + 1}" if n < 9 else "int8", "versions": "0+"} for k in range(10)
        ]}
        for n in range(10)
    ]  # fmt: skip
    data_schema(commonStructs=structs, fields=[{"name": "A", "type": "S0", "versions": "0+"}])(path)


BAD_JARS = [
    (not_zip, "cannot be read as a jar"),
    (cut, "cannot be read as a jar"),
    (flipped, "cannot be read"),
    (encrypted, "cannot be read"),
    (bomb, "Bomb.json: larger than 1,048,576 bytes"),
    (many, "2,001 schemas are too many"),
    (large_directory, "its file list is larger than"),
    (blow_up, "more than 10,000 fields"),
    (Path.mkdir, "not a file"),
    (lambda path: None, "no such file"),
    (lambda path: zipfile.ZipFile(path, "w").close(), "no message schema"),
    (written("{"), "line 1"),
    (written("[" * 200_000), "cannot be read"),
    (written("1" * 9_000), "cannot be read"),
    (written("[]"), "is not an object"),
    (written("\n" * 500_000 + "x"), "line 500001"),
    (data_schema(name="../../evil"), "is not a name"),
    (data_schema(name="index"), "does not begin with a capital"),
    (data_schema(validVersions="0-30000"), "are too many"),
    (data_schema(type="request", apiKey=2_000_000_000), "apiKey 2000000000 is not a number from 0 to 32767"),
    (data_schema(type="request", apiKey=-1), "apiKey -1 is not"),
    (field(default="2147483648"), "default '2147483648' is no int32"),
    (field(tag=2**70, taggedVersions="0+"), "tag 1180591620717411303424 is not a number from 0"),
    (wide(9_999, "0-999"), "9,999 fields in 1,000 versions are too many"),
    (crowd, "more than 100,000 fields"),
    (field(name="a b"), "'a b' is not a name"),
    (field(default="abc"), "default 'abc' is no int32"),
    (field(type="[]Struct'); import os"), "is not known"),
]
COMPARED = (not_zip, cut, bomb, blow_up)
"""Those that `make test` also gives to `diff`, which reads jars as `import` does."""


@pytest.mark.parametrize(
    ("command", "make", "words"),
    [
        *(pytest.param("import", *each) for each in BAD_JARS),
        *(
            pytest.param("diff", *each, marks=[] if each[0] in COMPARED else pytest.mark.exhaustive)
            for each in BAD_JARS
        ),
    ],
)
def test_a_damaged_or_hostile_jar_is_one_line_and_leaves_nothing(
    run: Run, tmp_path: Path, command: str, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "x.jar"
    make(path)
    done = run("schema", command, path, *(["--name", "x"] if command == "import" else ["4.4.0"]))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("kdissect: ")
    assert words in line
    assert not list((tmp_path / "data").rglob("*.json"))


@pytest.mark.parametrize("name", ["../x", ".hidden", "a/b", "x" * 65, ""])
def test_a_name_that_is_no_name_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    done = run("schema", "import", jar(tmp_path / "a.jar", haunt()), "--name", name)
    assert (done.returncode, len(done.stderr.splitlines())) == ((2, 1) if name else (0, 0))


def test_a_damaged_import_is_reported_and_can_be_removed(run: Run, tmp_path: Path) -> None:
    run("schema", "import", jar(tmp_path / "a.jar", haunt()))
    index = tmp_path / "data" / "kdissect" / "schemas" / "9.9.0" / "index.json"
    index.write_text("[")
    done = run("explain", "Fetch")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("kdissect: the imported release 9.9.0 (kdissect schema remove 9.9.0): index.json")
    assert run("schema", "remove", "9.9.0").returncode == 0
    assert run("explain", "Fetch").returncode == 0


def bad_index(folder: Path) -> None:
    index = folder / "index.json"
    index.write_text(index.read_text().replace('"apiKey": 201', '"apiKey": 2000000000'))


def bad_table(folder: Path) -> None:
    table = folder / "HauntRequest.json"
    table.write_text(table.read_text().replace('"apiKey": 201', '"apiKey": 2000000000'))


def bad_name(folder: Path) -> None:
    index = folder / "index.json"
    index.write_text(index.read_text().replace("HauntRequest", "../HauntRequest"))


@pytest.mark.parametrize("damage", [bad_index, bad_table, bad_name])
def test_an_import_of_before_that_is_bad_is_one_line(run: Run, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run("schema", "import", jar(tmp_path / "a.jar", haunt()))
    damage(tmp_path / "data" / "kdissect" / "schemas" / "9.9.0")
    done = run("show", capture_of(tmp_path, conversation([Turn(True, request(1))])))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "kdissect schema remove 9.9.0" in line


def test_an_unknown_release_gets_the_known_ones(run: Run) -> None:
    done = run("schema", "diff", "4.4.0", "5.0")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "known are 3.6.2, 3.7.2" in done.stderr
