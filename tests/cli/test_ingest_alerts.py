"""`ingest` tells whether what it has written matches a filter, and posts counts to an address."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
pytest.importorskip("duckdb", reason="NOT TESTED with duckdb: it is not installed")

from dissector.cli.alerts import Alerts
from dissector.cli.errors import UsageError
from dissector.core import limits
from tests.pipeline.test_micro_batch import cut

RDKAFKA, JAVA = (str(PCAPS / f"{name}.pcapng") for name in ("librdkafka", "java"))


class Receiver(ThreadingHTTPServer):
    """Takes what is posted: the path, the value of `Authorization`, and the JSON."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[tuple[str, str | None, object]] = []
        self.over = Event()
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def url(self, path: str = "/hook?token=SeCrEt01", login: str = "") -> str:
        return f"http://{login}127.0.0.1:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.path, self.headers["Authorization"], content))
        if self.path == "/slow":
            self.server.over.wait(30)
            return
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", self.server.url("/there"))
        else:
            self.send_response(int(self.path[1:]) if self.path[1:].isdigit() else 204)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


def matching(files: str, row_filter: str) -> int:
    return len(kdissect("show", files, "-Y", row_filter, "-f", "json").stdout.splitlines())


@pytest.mark.long
@pytest.mark.slow
def test_rows_of_this_run_alone_decide_and_are_counted(tmp_path: Path, receiver: Receiver) -> None:
    out = str(tmp_path / "tables")
    words = ["--out", out, "--fail-on", "error", "--notify", receiver.url()]
    failed = kdissect("ingest", RDKAFKA, *words)
    known = kdissect("ingest", RDKAFKA, *words)
    other = kdissect("ingest", JAVA, "--out", out, "--fail-on", "api == SyncGroup && number > 0", "--notify", words[-1])
    wrong = matching(RDKAFKA, "error")
    assert wrong > 1
    assert failed.returncode == 1
    assert failed.stderr.decode().splitlines()[1:] == [f"kdissect: --fail-on error: {wrong} of 75 rows match"]
    assert (known.returncode, known.stderr.count(b"\n")) == (0, 1)
    syncs = matching(JAVA, "api == SyncGroup")
    assert syncs
    assert matching(RDKAFKA, "api == SyncGroup"), "they are in the tables, too"
    assert other.returncode == 1
    posted = [{**content} for path, login, content in receiver.posted if isinstance(content, dict)]
    assert [(path, login) for path, login, _ in receiver.posted] == [("/hook?token=SeCrEt01", None)] * 3
    assert posted[0] == {
        "tables": out, "captures": 1, "packets": 315, "problems": 0, "exchanges": 75, "filter": "error", "rows": 75,
        "matching": wrong,
    }  # fmt: skip
    assert posted[1] == posted[0] | dict.fromkeys(("captures", "packets", "exchanges", "rows", "matching"), 0)
    assert (posted[2]["rows"], posted[2]["matching"]) == (60, syncs)


@pytest.mark.long
@pytest.mark.slow
def test_nothing_that_matches_is_no_failure_and_is_told_all_the_same(tmp_path: Path, receiver: Receiver) -> None:
    done = kdissect(
        "ingest", RDKAFKA, "--out", str(tmp_path), "--fail-on", "latency > 1h", "--notify", receiver.url("/")
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 1)
    [(_, _, content)] = receiver.posted
    assert isinstance(content, dict)
    assert (content["rows"], content["matching"]) == (75, 0)


@pytest.mark.long
@pytest.mark.slow
def test_each_micro_batch_is_told_and_each_row_is_in_one(tmp_path: Path, receiver: Receiver) -> None:
    """Findings about several connections come later than their rows: those of a batch count with it."""
    ring = tmp_path / "ring"
    ring.mkdir()
    for number, plan in enumerate(cut(Path(RDKAFKA), ring, 3)):
        os.utime(plan.path, (1_000 + number, 1_000 + number))
    words = ("--out", str(tmp_path / "tables"), "--fail-on", "error", "--notify", receiver.url())
    done = kdissect("ingest", str(ring), "--follow", "--idle", "0.5", *words)
    assert done.returncode == 1, done.stderr
    posted = [content for _, _, content in receiver.posted if isinstance(content, dict)]
    assert len(posted) == done.stderr.count(b" packets/s") > 1
    assert sum(each["captures"] for each in posted) == 3
    assert sum(each["exchanges"] for each in posted) == sum(each["rows"] for each in posted) == 75
    assert sum(each["matching"] for each in posted) == matching(RDKAFKA, "error")


@pytest.mark.long
@cases(
    ("path", "words"),
    [
        ("/", ""),
        ("/500", "127.0.0.1:PORT answers 500 Internal Server Error"),
        ("/elsewhere", "127.0.0.1:PORT redirects: name where to"),
        ("/slow", "127.0.0.1:PORT: timed out"),
    ],
)
def test_a_receiver_that_refuses_or_is_late_is_a_line_without_the_secrets_of_its_address(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: str, words: str
) -> None:
    monkeypatch.setattr(limits, "DEFAULT", replace(limits.DEFAULT, notify_seconds=0.5 if path == "/slow" else 10.0))
    told = Alerts("tables", None, receiver.url(path, "user:SeCrEt02@"), bodies=True)
    assert told.tell([], {"captures": 1}) == (2 if words else 0)
    port = str(receiver.server_address[1])
    assert capsys.readouterr().err == (f"kdissect: --notify {words}\n".replace("PORT", port) if words else "")
    assert receiver.posted[-1] == (path, "Basic dXNlcjpTZUNyRXQwMg==", {"tables": "tables", "captures": 1})


@cases("url", ["ftp://host/", "host:80", "http://", "http://host:port/"])
def test_an_address_that_is_none_is_refused_before_anything_is_read(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--notify: "):
        Alerts("tables", None, url, bodies=True)


@cases(("row_filter", "needs_bodies"), [("error", True), ("request.acks == 1", True), ("latency > 1ms", False)])
def test_a_filter_on_bodies_needs_them(row_filter: str, needs_bodies: bool) -> None:
    assert Alerts("tables", row_filter, None, bodies=True)
    if not needs_bodies:
        assert Alerts("tables", row_filter, None, bodies=False)
        return
    with pytest.raises(UsageError, match=r"needs bodies: leave out --no-bodies$"):
        Alerts("tables", row_filter, None, bodies=False)
