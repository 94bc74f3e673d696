"""`kdissect live` as root: reports at its end are opened while it may, by the rules of its captures."""

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.capture.live.loopback import broker, needs_rights, talk
from tests.cli.test_commands import KDISSECT
from tests.cli.test_live_rights import CALLER, HANGS, SUDO, ended, live
from tests.forked import run_module
from tests.needs import as_another_user

pytestmark = [
    pytest.mark.slow,
    needs_rights,
    as_another_user,
]


KEPT: Final = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}


def reports(folder: Path) -> list[str]:
    return ["--check", "--junit", f"{folder}/made/rules.xml", "--summary", f"{folder}/summary.md"]


@pytest.mark.long
@pytest.mark.parametrize(("environment", "owner"), [({}, 0), (SUDO, CALLER)])
def test_reports_are_written_where_only_root_may_write(environment: dict[str, str], owner: int, tmp_path: Path) -> None:
    """As in a container whose job is root's: its summary is there before, and is root's."""
    (tmp_path / "made").mkdir()
    rules, summary = tmp_path / "made/rules.xml", tmp_path / "summary.md"
    rules.write_text("an earlier report, longer than this one\n" * 500)
    summary.write_text("what the command wrote\n")
    for each in (rules, summary):
        os.chown(each, owner, owner)
    tmp_path.chmod(0o700)
    with broker() as port, live("-p", str(port), *reports(tmp_path), **environment) as process:
        assert rules.stat().st_size > 10_000
        talk(port, 3)
        time.sleep(0.5)
        ended(process)
    assert summary.read_text().startswith("what the command wrote\n\n# 3 exchanges in 1 file: 0 rules")
    assert ElementTree.parse(rules).getroot()[0].get("name") == "kdissect check"


@pytest.mark.long
def test_a_report_that_who_called_sudo_may_not_write_is_refused_before_anything_is_captured(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("root's")

    def refusal() -> str:
        done = run_module(KDISSECT[-1], ["live", *reports(tmp_path)], os.environ | SUDO, longest=HANGS)
        assert (done.returncode, done.stdout) == (2, b"")
        return done.stderr.decode()

    assert refusal() == f"kdissect: can't write {tmp_path}/made/rules.xml: permission denied\n"
    (tmp_path / "made").mkdir()
    assert refusal() == f"kdissect: can't write {summary}: it exists, and user {CALLER} may not write to it\n"
    assert summary.read_text() == "root's"


@pytest.mark.long
@pytest.mark.parametrize("environment", [{}, SUDO])
def test_root_writes_no_report_through_a_link_that_somebody_else_has_made(
    environment: dict[str, str], tmp_path: Path
) -> None:
    kept, link, second = tmp_path / "kept", tmp_path / "link.xml", tmp_path / "second.xml"
    kept.write_text("root's")
    kept.chmod(0o600)
    link.symlink_to(kept)
    second.hardlink_to(kept)
    os.lchown(link, CALLER, CALLER)
    for path in (link, second):
        words = ["live", "--check", "--junit", str(path)]
        done = run_module(KDISSECT[-1], words, KEPT | environment, longest=HANGS)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(f"kdissect: can't write {path}: ".encode())
        assert len(done.stderr.splitlines()) == 1
    assert kept.read_text() == "root's"


@pytest.mark.long
def test_a_report_into_a_pipe_that_nobody_reads_ends_with_one_line() -> None:
    with tempfile.TemporaryDirectory() as folder, broker() as port:
        os.mkfifo(pipe := Path(folder, "rules.xml"))
        for each in (folder, pipe):
            os.chown(each, CALLER, 2_345)
        with live("-p", str(port), "--check", "--junit", str(pipe), **SUDO) as process:
            talk(port, 3)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 2
    assert err.splitlines()[-1].endswith(f"can't write {pipe}: nobody reads this pipe"), err
