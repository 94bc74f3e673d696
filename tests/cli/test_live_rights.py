"""`kdissect live` as root: who its processes are while they read packets, and whose its files are."""

import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

import dissector
from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.cli.test_commands import KDISSECT
from tests.conftest import some_of
from tests.forked import run_module
from tests.needs import as_another_user, needs
from tests.probe.servers import frame
from tests.terminal import terminal
from tests.traffic import request
from tui.run import GONE

pytestmark = [
    pytest.mark.slow,
    needs_rights,
    as_another_user,
]
CALLER: Final = 1_234
"""Somebody whom no list of users has."""
SUDO: Final = {"SUDO_UID": str(CALLER), "SUDO_GID": "2345"}
NOBODY: Final = pwd.getpwnam("nobody")
HANGS: Final = 60
NOTHING: Final = "0000000000000000"
END: Final = "\x05"
"""ctrl+e, which ends a capture on the screen, and starts another one."""
RECORDER: Final = "dissector.capture.live.recorder"


@contextmanager
def live(*words: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """`kdissect live` in an environment without sudo's variables but these, from when it captures on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    with subprocess.Popen(
        [*KDISSECT, "live", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept | environment
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "capturing on" in line, line + process.stderr.read()
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[str]") -> str:
    """The rows that it still prints after an interrupt."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 0, err
    return out


def status(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def threads(process: int) -> list[int]:
    return [int(each.name) for each in Path(f"/proc/{process}/task").iterdir()]


def assert_is_no_more_than(process: int, uid: int, gid: int, groups: str) -> None:
    """Every thread of a process is this user's, without any right of root's."""
    for thread in threads(process):
        found = status(thread)
        assert found["Uid"] == " ".join([str(uid)] * 4)
        assert found["Gid"] == " ".join([str(gid)] * 4)
        assert found["Groups"] == groups
        assert {found[f"Cap{each}"] for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {NOTHING}
        assert found["NoNewPrivs"] == "1"


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "uid", "gid"),
    [
        pytest.param({}, NOBODY.pw_uid, NOBODY.pw_gid, marks=pytest.mark.exhaustive),
        (SUDO, CALLER, 2_345),
        pytest.param(  # root who called sudo
            {"SUDO_UID": "0", "SUDO_GID": "0"}, NOBODY.pw_uid, NOBODY.pw_gid, marks=pytest.mark.exhaustive
        ),
        ({"SUDO_UID": "-1", "SUDO_GID": "x"}, NOBODY.pw_uid, NOBODY.pw_gid),
    ],
)
def test_both_processes_are_the_user_s_who_called_sudo_and_so_is_the_file(
    environment: dict[str, str], uid: int, gid: int, tmp_path: Path
) -> None:
    path = tmp_path / "kept.pcapng"  # in a folder where that user may not write
    with broker() as port, live("--text", "-p", str(port), "-w", str(path), **environment) as process:
        [recorder] = children(process.pid)
        talk(port, 5)
        assert process.stdout is not None
        rows = b""
        while rows.count(b"Metadata") < 5:
            rows += os.read(process.stdout.fileno(), 1 << 16)
        for each in (process.pid, recorder):
            assert_is_no_more_than(each, uid, gid, str(gid))
        assert ended(process) == ""
    assert (path.stat().st_uid, path.stat().st_gid, path.stat().st_mode) == (uid, gid, 0o100600)
    with Capture([str(path)]) as capture:
        assert sum(1 for _ in capture.exchanges()) == 5
        assert not capture.problems


@pytest.mark.exhaustive
def test_a_user_s_own_groups_are_there() -> None:
    users = [each for each in pwd.getpwall() if each.pw_uid]
    user = max(users, key=lambda each: len(os.getgrouplist(each.pw_name, each.pw_gid)))
    groups = " ".join(map(str, sorted(os.getgrouplist(user.pw_name, user.pw_gid))))
    with broker() as port, live("--text", "-p", str(port), SUDO_UID=str(user.pw_uid), SUDO_GID=str(user.pw_gid)) as it:
        assert_is_no_more_than(it.pid, user.pw_uid, user.pw_gid, groups)
        ended(it)


@pytest.mark.long
@pytest.mark.parametrize("whose", some_of([0, CALLER], 0))
def test_files_of_a_ring_are_made_to_the_end_also_where_only_root_may_make_them(whose: int) -> None:
    with tempfile.TemporaryDirectory() as folder, broker() as port:
        os.chown(folder, whose, whose)
        ring = ("-w", f"{folder}/r.pcapng", "-b", "filesize:8", "-b", "files:2")
        with live("--text", "-p", str(port), *ring, **SUDO) as process:
            for first in range(0, 400, 20):
                talk(port, 20, first=first)
                time.sleep(0.06)  # a file ends with a block of the kernel's
            assert ended(process).count("Metadata") == 400
        files = sorted(Path(folder).iterdir())
        assert len(files) == 2
        assert int(files[0].name.split("_")[1]) > 1
        assert {(file.stat().st_uid, file.stat().st_mode) for file in files} == {(CALLER, 0o100600)}


def refusal(path: Path) -> str:
    done = run_module(KDISSECT[-1], ["live", "--text", "-w", str(path)], os.environ | SUDO, longest=HANGS)
    assert (done.returncode, done.stdout) == (2, b"")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr.decode()


@pytest.mark.long
def test_root_touches_no_file_that_the_user_may_not_write(tmp_path: Path) -> None:
    others, link = tmp_path / "others.pcapng", tmp_path / "link.pcapng"
    others.write_bytes(b"keep this")
    link.symlink_to(others)
    dangling = tmp_path / "dangling.pcapng"
    dangling.symlink_to(tmp_path / "made")
    for path in (others, link, dangling):
        assert str(path) in refusal(path)
    assert others.read_bytes() == b"keep this"
    assert others.stat().st_uid == 0
    assert not (tmp_path / "made").exists()
    mine = tmp_path / "mine.pcapng"
    mine.write_bytes(b"an earlier capture")
    mine.chmod(0o640)
    os.chown(mine, CALLER, 2_345)
    with live("--text", "-w", str(mine), **SUDO) as process:
        ended(process)
    assert mine.stat().st_mode == 0o100640
    assert b"an earlier" not in mine.read_bytes()


@pytest.mark.long
def test_a_pipe_that_nobody_reads_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder, "pipe.pcapng")
        os.mkfifo(pipe)
        for owner in (0, CALLER):
            os.chown(folder, owner, owner)
            assert "nobody reads this pipe" in refusal(pipe)
        assert "is no file" in refusal(Path("/dev/null"))


@pytest.mark.exhaustive
def test_processes_of_others_are_still_found(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with (
        broker() as port,
        live("--format", "json", "-p", str(port), "-w", str(path), **SUDO) as process,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        deadline = time.monotonic() + HANGS
        number = 0
        while path.read_bytes().count(b"process {") < 2 and time.monotonic() < deadline:
            client.sendall(request(number))
            frame(client)
            number += 1
        assert f'"pid": {os.getpid()}'.encode() in path.read_bytes()
        ended(process)


@pytest.mark.long
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_capture_programs_may_capture_and_nothing_else(tool: str, tmp_path: Path) -> None:
    needs(tool)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    path = tmp_path / "kept.pcapng"
    words = ("--text", "-i", "any", "-w", str(path))
    with (
        broker() as port,
        live(*words, "--capture-filter", f"tcp port {port}", PATH=str(tmp_path / "bin"), **SUDO) as process,
    ):
        [recorder] = children(process.pid)
        assert_is_no_more_than(recorder, CALLER, 2_345, "2345")
        [child] = children(recorder)
        found = status(child)
        assert found["Name"] == tool
        assert found["Uid"] == " ".join([str(CALLER)] * 4)
        assert {int(found[f"Cap{each}"], 16) & ~0x3000 for each in ("Prm", "Eff", "Bnd")} == {0}
        assert found["NoNewPrivs"] == "1"
        talk(port, 5)
        time.sleep(1)
        assert ended(process).count("Metadata") == 5
    assert path.stat().st_uid == CALLER


@pytest.mark.long
def test_who_keeps_the_rights_ends_with_it_and_on_any_other_request() -> None:
    code = """
import os, socket, sys
from dissector.capture.live import CaptureSettings
from dissector.capture.live.right_holder import RightHolder
for bad in (b"x\\0\\0\\0\\0", b"c\\4\\0\\0\\0....", b"c\\0\\0\\0\\0", b"p\\xff\\xff\\xff\\xff", b"p"):
    holder = RightHolder(CaptureSettings("lo", (9092,), "", False, ""))
    pair = ("127.0.0.1:1", "127.0.0.1:2")
    assert holder.processes_of([pair]) == {}
    assert holder._ask(b"p", b"\\xff\\n \\n\\x00 \\n1 2 3") == b"[]"
    holder._socket.sendall(bad)
    holder._socket.shutdown(socket.SHUT_WR)
    assert holder._socket.recv(1) == b"", bad
    assert holder.processes_of([pair]) == {}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANGS)


def recorders(path: Path) -> list[int]:
    """The processes that capture to a file."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            words = (each / "cmdline").read_bytes() if each.name.isdecimal() else b""
            if RECORDER.encode() in words and f'"{path}"'.encode() in words:
                found.append(int(each.name))
    return found


@pytest.mark.exhaustive
def test_the_screen_starts_another_capture_as_the_same_user(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port:
        words = [*KDISSECT, "live", "-p", str(port), "-w", str(path)]
        with terminal(words, XDG_STATE_HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), **SUDO) as screen:
            screen.until("on lo, port")
            talk(port, 3)
            screen.until("Metadata")
            screen.send(END)
            screen.until("ended")
            screen.written = b""
            screen.send(END)
            screen.until("on lo, port")
            talk(port, 4)
            screen.until("Metadata")
            [recorder] = recorders(tmp_path / "kept-2.pcapng")
            for each in (screen.process.pid, recorder):
                assert_is_no_more_than(each, CALLER, 2_345, "2345")
            ends = os.pidfd_open(recorder)
            screen.send("q")
            screen.rest()
            assert screen.process.wait(HANGS) == 0
            assert select.select([ends], [], [], HANGS)[0], "the capture process goes on"
            os.close(ends)
    for kept, exchanges in ((path, 3), (tmp_path / "kept-2.pcapng", 4)):
        assert kept.stat().st_uid == CALLER
        with Capture([str(kept)]) as capture:
            assert sum(1 for _ in capture.exchanges()) == exchanges


@pytest.mark.exhaustive
def test_a_program_that_only_root_can_reach_goes_on_as_somebody_else(tmp_path: Path) -> None:
    """Modules and tables that are read late come from where root has installed them."""
    place = tmp_path / "packages"  # below a folder that is root's alone
    place.symlink_to(Path(dissector.__file__).parents[1])
    words = [sys.executable, "-P", "-m", "dissector", "live"]
    folders = {"PYTHONPATH": str(place), "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with broker() as port:
        with terminal([*words, "-p", str(port)], **folders, **SUDO) as screen:
            screen.until("on lo, port")
            talk(port, 3)
            screen.until("Metadata")
            assert_is_no_more_than(screen.process.pid, CALLER, 2_345, "2345")
            for keys in ("?", "\x1b", "F"):
                screen.press(keys)
            assert screen.process.poll() is None
            screen.hang_up()
            assert screen.process.wait(HANGS) == GONE
        assert b"Traceback" not in screen.written
        with live("--format", "json", "-Y", "severity == error || api == Metadata", "-p", str(port), **folders) as it:
            talk(port, 3)
            time.sleep(1)
            assert ended(it).count('"api":"Metadata"') == 3


@pytest.mark.long
def test_a_working_folder_that_is_root_s_alone_is_no_obstacle(tmp_path: Path) -> None:
    """`python -m` puts it first on the import path, and nothing is loaded from it."""
    tmp_path.chmod(0o700)
    words = [sys.executable, "-m", "dissector", "live", "--text"]
    packages = str(Path(dissector.__file__).parents[1])
    folders = {"PYTHONPATH": packages, "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with broker() as port:
        it = subprocess.Popen(
            [*words, "-p", str(port)], cwd=tmp_path, env=os.environ | folders | SUDO, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            assert it.stderr is not None
            assert "capturing on" in it.stderr.readline()
        finally:
            it.send_signal(signal.SIGINT)
            _, err = it.communicate(timeout=HANGS)
    assert it.returncode == 0, err


@pytest.mark.long
def test_what_a_capability_gives_is_given_up_as_well() -> None:
    code = """
import os
from dissector.capture.live.privileges import User, give_up_rights, rights_are_held, NET_RAW
from dissector.capture.live.rights import Rights
give_up_rights(User("somebody", 1234, 2345, (2345,), "/"), [NET_RAW])
assert rights_are_held()
rights = Rights()
rights._program.stay_reachable = lambda user: None  # Python may be where only root can go
rights.give_up()
print(open("/proc/self/status").read())
assert not rights_are_held() and rights.user is None and not rights.warning
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANGS)
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    assert found["Uid"].split() == [str(CALLER)] * 4
    assert {found[f"Cap{each}"].strip() for each in ("Inh", "Prm", "Eff", "Amb")} == {NOTHING}
    assert found["NoNewPrivs"].strip() == "1"


@pytest.mark.long
def test_a_root_that_can_t_become_another_user_goes_on_without_capabilities() -> None:
    """As in a container that has few of them."""
    code = """
import ctypes, os, sys
CAP_SETGID, CAP_SETUID, PR_CAPBSET_DROP = 6, 7, 24
for right in (CAP_SETGID, CAP_SETUID):
    assert not ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, right, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", '''
from dissector.capture.live.rights import Rights
rights = Rights()
rights.give_up()
print(rights.warning)
print(open("/proc/self/status").read())
'''])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANGS)
    assert done.stdout.startswith("this system does not let root become another user")
    found = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    assert {found[f"Cap{each}"].strip() for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {NOTHING}
    assert found["NoNewPrivs"].strip() == "1"
