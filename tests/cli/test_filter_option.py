"""``-Y`` as a user meets it: in every form, from files and pipes, by one process and several."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from dissector.cli.every_command import app
from dissector.cli.reference import command_pages
from tests.cases import cases
from tests.cli.test_commands import JAVA, kdissect
from tests.cli.test_workers import with_three_workers
from tests.conftest import PCAPS

SLOW_FETCHES = "api == Fetch && latency > 50ms"
PIPELINED = str(PCAPS / "librdkafka-pipelined.pcapng")


def numbers(path: str, *words: str) -> list[str]:
    return kdissect("show", path, "--fields", "number", *words).stdout.decode().split()


def test_whatever_a_filter_may_read_can_be_had_in_every_command_with_one() -> None:
    pages = {
        each.name: {line.names.split()[0].rstrip(",") for line in each.parameters}
        for each in command_pages(get_command(app))
    }
    filtering = {name for name, options in pages.items() if options & {"-Y", "--a"}}
    assert filtering == {"open", "show", "records", "stats", "diff", "live", "proxy", "export", "groups"}
    for name in filtering:
        assert {"--show-secrets", "--resolve", "--schemas"} <= pages[name], name
        assert ("--keylog" in pages[name]) == (name != "proxy"), name  # which has what TLS carries


@pytest.mark.parametrize("command", ["show", "stats"])
def test_a_filter_reads_secrets_only_where_they_are_shown(command: str) -> None:
    words = command, str(PCAPS / "java-sasl-plain.pcapng"), "-Y", 'auth_bytes contains "alice-secret"'
    assert kdissect(*words).returncode == 1
    assert kdissect(*words, "--show-secrets").stdout


@pytest.mark.long
@pytest.mark.slow
def test_every_form_has_the_rows_that_fit() -> None:
    lines = [json.loads(line) for line in kdissect("show", JAVA, "-f", "json").stdout.splitlines()]
    expected = [each["number"] for each in lines if each["api"] == "Fetch" and each["latency_ns"] > 50_000_000]
    assert expected
    found = kdissect("show", JAVA, "-f", "json", "-Y", SLOW_FETCHES).stdout.splitlines()
    assert [json.loads(line)["number"] for line in found] == expected
    assert numbers(JAVA, "-Y", SLOW_FETCHES) == [str(number) for number in expected]
    head, *rows = kdissect("show", JAVA, "-Y", SLOW_FETCHES).stdout.decode().splitlines()
    assert head == kdissect("show", JAVA).stdout.decode().splitlines()[0]
    assert [int(row.split()[0]) for row in rows] == expected
    names, *table = kdissect("show", JAVA, "-f", "csv", "-Y", SLOW_FETCHES).stdout.decode().splitlines()
    assert names.startswith("number,")
    assert [int(row.partition(",")[0]) for row in table] == expected
    assert kdissect("show", JAVA, "-f", "tree", "-Y", SLOW_FETCHES).stdout.count(b" Fetch  ") == len(expected)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("names", "wanted"), [("number", "api == Produce"), ("number,info", "request.acks == ALL")])
def test_the_limit_counts_what_fits(names: str, wanted: str) -> None:
    whole = kdissect("show", JAVA, "--fields", names, "-Y", wanted).stdout.splitlines()
    assert len(whole) > 3
    for limit in (1, len(whole), len(whole) + 1):
        some = kdissect("show", JAVA, "--fields", names, "-Y", wanted, "--limit", str(limit)).stdout.splitlines()
        assert some == whole[:limit]


@pytest.mark.long
@pytest.mark.slow
@cases("more", [(), ("--limit", "2"), ("-f", "json")])
@cases("wanted", ["api == FetchSnapshot", "request.acks == 77"])
def test_nothing_that_fits_is_code_1_and_one_line(wanted: str, more: tuple[str, ...]) -> None:
    done = kdissect("show", JAVA, "-Y", wanted, *more)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"kdissect: -Y {wanted}: 0 of 60 rows match\n"


@pytest.mark.long
@pytest.mark.slow
@cases("form", ["pcapng", "json", "mermaid"])
@cases(("more", "rows"), [((), 60), (("--rows", "1-5,9"), 6)])
def test_an_export_of_nothing_is_code_1_one_line_and_no_file(
    form: str, more: tuple[str, ...], rows: int, tmp_path: Path
) -> None:
    kept = tmp_path / f"kept.{form}"
    kept.write_text("somebody's")
    for out in (str(kept), str(tmp_path / f"new.{form}"), "-"):
        done = kdissect("export", JAVA, "-Y", "api == FetchSnapshot", *more, "-w", out, "--format", form)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.decode() == f"kdissect: -Y api == FetchSnapshot: 0 of {rows} rows match\n"
    assert kept.read_text() == "somebody's"
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]


@cases("command", [["show", JAVA], ["export", JAVA, "-w", "nowhere.pcapng"], ["live"]])
def test_a_bad_filter_is_shown_with_its_place(command: list[str]) -> None:
    done = kdissect(*command, "-Y", "api == Ftech && error")
    assert (done.returncode, done.stdout) == (2, b"")
    message, shown, mark = done.stderr.decode().splitlines()
    assert message == "kdissect: -Y: column 8: unknown API 'Ftech'; did you mean Fetch"
    assert shown == "  api == Ftech && error"
    assert mark.index("^") == shown.index("Ftech")


def test_a_bad_filter_does_no_harm_to_a_terminal() -> None:
    done = kdissect("show", JAVA, "-Y", "error " * 50 + "\x1b[2J\u202e == 3")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 3
    assert b"\x1b" not in done.stderr
    shown, mark = done.stderr.decode().splitlines()[1:]
    assert shown[mark.index("^") :].startswith("error")


@pytest.mark.long
@pytest.mark.slow
def test_rows_of_a_pipe_are_filtered_as_they_come() -> None:
    for wanted in ("api == Produce", "request.acks == ALL", "error"):
        piped = kdissect("show", "-", "--fields", "api,correlation_id", "-Y", wanted, data=Path(JAVA).read_bytes())
        assert piped.returncode == 0
        whole = kdissect("show", JAVA, "--fields", "api,correlation_id", "-Y", wanted).stdout
        assert sorted(piped.stdout.splitlines()) == sorted(whole.splitlines())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")
@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("json", "request.acks == ALL"),
        ("text", "request.acks == 77"),
        pytest.param("text", "latency > 1ms", marks=pytest.mark.exhaustive),
        pytest.param("csv", "error", marks=pytest.mark.exhaustive),
    ],
)
def test_workers_print_what_one_process_does(form: str, wanted: str) -> None:
    words = ["show", PIPELINED, "-f", form, "-Y", wanted]
    one, three = kdissect(*words), with_three_workers(*words)
    assert (three.returncode, three.stdout, three.stderr) == (one.returncode, one.stdout, one.stderr)
    assert one.returncode == (1 if wanted.endswith("77") else 0)


@pytest.mark.long
def test_export_takes_the_rows_that_fit(tmp_path: Path) -> None:
    out = str(tmp_path / "out.pcapng")
    assert kdissect("export", JAVA, "-Y", "error", "-w", out).returncode == 0
    whole = kdissect("show", JAVA, "--fields", "api,correlation_id,latency_ns", "-Y", "error").stdout
    assert kdissect("show", out, "--fields", "api,correlation_id,latency_ns", "-Y", "error").stdout == whole
    both = kdissect("export", JAVA, "-Y", "error", "--rows", "1-34", "-w", out)
    assert b": 1 row" in both.stderr
    assert kdissect("export", JAVA, "-Y", "api == FetchSnapshot", "-w", out).returncode == 1


@pytest.mark.long
@pytest.mark.slow
def test_without_a_filter_no_parser_is_imported() -> None:
    words = "import sys; from dissector.cli.show import show; from dissector.cli.formats import Format; "
    words += f"show([{JAVA!r}], Format.JSON, None); sys.exit('lark' in sys.modules or 're2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], stdout=subprocess.DEVNULL, check=False).returncode == 0
