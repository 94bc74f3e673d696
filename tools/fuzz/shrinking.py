"""Files that become shorter while they are read or shown, as those of a ring that rotates: captures, and Kafka's own.

Each case has a process of its own, as a fault in a mapped file would end this one. Whatever is left, the process goes
on, rows that were read can be shown, and a line says that the file became shorter.
"""

import fcntl
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dissector.capture import CaptureError, GrowingFile
from dissector.capture.sources import TRUNCATED
from dissector.capture_session import Capture
from tests.traffic import conversation, ethernet, exchanges, pcap
from tools.fuzz.accounting import Streams
from tools.fuzz.capture_checks import check_problems, check_rows, check_words
from tools.fuzz.captures import capture_file
from tools.fuzz.case import Case
from tools.fuzz.children import in_child
from tools.fuzz.seeds import Seeds

PAGE: Final = 4096
MANY: Final = 1_500
"""Exchanges of a capture that is read in several steps."""
FILE: Final = "orders-0.log"


def shrinking_file(seeds: Seeds, chance: random.Random) -> tuple[bytes, str, int]:
    """A file, when it becomes shorter, and how much of it is left."""
    kind = chance.random()
    if kind < 0.2:
        data = b"".join(chance.choices(seeds.records, k=chance.randint(2, 40)))
    elif kind < 0.4:
        data = pcap([ethernet(packet) for packet in conversation(exchanges(MANY, pipelined=chance.randint(1, 9)))])
    else:
        data = capture_file(chance.choice(seeds.captures), chance)
    left = chance.choice((0, 1, 10, PAGE - 1, PAGE, PAGE + 1, chance.randrange(len(data) + 1)))
    return data, chance.choice(list(MOMENTS)), min(left, len(data))


def check_shrinking(case: Case) -> None:
    """Read the file; make it shorter at its moment, `case.when`; show what there is."""
    assert case.when is not None
    assert case.left is not None
    work, left = MOMENTS[case.when], min(case.left, len(case.data))

    def read() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / FILE
            path.write_bytes(case.data)
            try:
                work(path, left)
            except CaptureError as error:
                check_words(str(error))

    in_child(read)


def _when_opened(path: Path, left: int) -> None:
    size = path.stat().st_size
    with Capture([str(path)]) as capture:
        os.truncate(path, left)
        _read(capture)
        _check(capture, becomes_shorter=left < size)


def _while_read(path: Path, left: int) -> None:
    """After the first step of reading."""
    size = path.stat().st_size
    with Capture([str(path)]) as capture:
        reading = capture.read()
        next(reading, None)
        packets = capture.packets
        os.truncate(path, left)
        for _ in reading:
            pass
        assert capture.packets >= packets
        _check(capture, becomes_shorter=left < size)


def _when_read(path: Path, left: int) -> None:
    size = path.stat().st_size
    with Capture([str(path)]) as capture:
        _read(capture)
        os.truncate(path, left)
        _check(capture, becomes_shorter=left < size)


def _while_shown(path: Path, left: int) -> None:
    """In the middle of the rows."""
    size = path.stat().st_size
    with Capture([str(path)]) as capture:
        _read(capture)
        for row in range(len(capture) // 2):
            capture.exchange(row)
        os.truncate(path, left)
        _check(capture, becomes_shorter=left < size)


def _and_grows_again(path: Path, left: int) -> None:
    size = path.stat().st_size
    with Capture([str(path)]) as capture:
        _read(capture)
        os.truncate(path, left)
        rows = len(capture)
        check_rows(capture)
        os.truncate(path, size)
        assert len(capture) == rows
        check_rows(capture)
        check_problems(capture, 1)


def _is_written_again(path: Path, left: int) -> None:
    """In place, with other bytes: rows may be anything, but can be shown."""
    with Capture([str(path)]) as capture:
        _read(capture)
        path.write_bytes(bytes(range(256)) * (left // 256 + 1))
        for exchange in capture.exchanges():
            assert exchange.row.number


def _while_followed(path: Path, left: int) -> None:
    """A file that grows, then becomes shorter, then grows with what it had."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    changes: list[Callable[[], object]] = [
        lambda: None, lambda: path.write_bytes(data), lambda: os.truncate(path, left), lambda: path.write_bytes(data),
    ]  # fmt: skip

    def ended() -> bool:
        if changes:
            changes.pop(0)()
        return not changes

    with Capture([GrowingFile(str(path), ended)]) as capture:
        _read(capture)
        check_rows(capture)
        check_problems(capture, 1)


def _while_printed(path: Path, left: int) -> None:
    """`show` waits for whoever reads its output; when it goes on the file is shorter."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PAGE)
    child = os.fork()
    if not child:
        os.close(out)
        os.dup2(into, 1)
        os.dup2(into, 2)
        os._exit(_show(path))
    os.close(into)
    with os.fdopen(out, "rb") as printed:
        words = printed.read(1)
        os.truncate(path, left)
        words += printed.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1, 2), f"show ended with {code}: {words[-500:]!r}"
    assert b"Traceback" not in words, words[-2_000:].decode("utf-8", "replace")


def _show(path: Path) -> int:
    """Print rows as JSON; return the exit code."""
    from dissector.cli.every_command import app

    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    try:
        app(["show", "-f", "json", str(path)])
    except SystemExit as error:
        sys.stdout.flush()
        return error.code if isinstance(error.code, int) else 0
    except BaseException:  # whatever it is, it is what we look for
        sys.excepthook(*sys.exc_info())
        return 99
    return 0


def _read(capture: Capture) -> None:
    streams = Streams(capture)
    for _ in capture.read():
        pass
    streams.check()


def _check(capture: Capture, *, becomes_shorter: bool) -> None:
    check_rows(capture)
    check_problems(capture, 1)
    assert not becomes_shorter or TRUNCATED in {problem.code for problem in capture.problems}, "nothing is said"


MOMENTS: Final[dict[str, Callable[[Path, int], None]]] = {
    "opened": _when_opened, "while read": _while_read, "read": _when_read, "while shown": _while_shown,
    "grows again": _and_grows_again, "written again": _is_written_again, "followed": _while_followed,
    "printed": _while_printed,
}  # fmt: skip
