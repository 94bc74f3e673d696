"""What holds of every capture: it is read in time, every byte of it is accounted for, and every row can be shown; or it
is refused in one line."""

import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.render.lines import row_line
from dissector.cli.render.trees import tree_lines
from dissector.core.limits import DEFAULT
from dissector.core.text import HOSTILE
from tools import instrumented_kernel
from tools.fuzz.accounting import Streams
from tools.fuzz.case import Case
from tools.fuzz.leaks import leak, rare_faces
from tools.fuzz.message_checks import check_line, check_message
from tools.fuzz.redactions import left_of_names

LIMITS: Final = replace(DEFAULT, key_search=1 << 18)
"""A search for TLS keys may cost as much for a small capture as for a large one: here little."""
SECONDS_A_MEGABYTE: Final = 4.0
"""What reading and listing a capture may cost: twice what `make bench BENCH=hostile` allows, as machines are busy."""
OF_ORPHANS: Final = 8.0
"""What it may cost where responses of many connections have no requests: each connection is judged by itself."""
ANY_SIZE: Final = 0.4
"""Seconds that a small one may take: caps are filled, readers made."""
RARE: Final = 16
"""Of so many captures with secrets one is searched in the faces that cost more."""
MOST_ROWS: Final = 200
"""Rows of a capture that are looked at closely."""
MOST_PROBLEMS: Final = 50
"""Lines about one file: some about damage, some about interfaces, and one each about anything else."""


class CostError(AssertionError):
    """Reading and listing a capture took too long for its size."""


def check_captures(case: Case) -> None:
    """The capture or captures of a case are read as one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(len(case.files))]
        for path, data in zip(paths, case.files, strict=True):
            path.write_bytes(data)
        words = folder
        try:
            with Capture([str(path) for path in paths], LIMITS) as capture:
                _check(capture, case)
            if case.names:
                found = left_of_names(paths[0], [bytes.fromhex(each) for each in case.names])
                assert not found, "a name is left"
        except CaptureError as error:
            words = str(error)
        assert folder in words
        check_words(words)


def _check(capture: Capture, case: Case) -> None:
    streams = Streams(capture)
    start = time.thread_time()
    packets = 0
    for progress in capture.read():
        packets = progress.packets
    frames = 0
    for exchange in capture.exchanges():
        assert not HOSTILE.search(row_line(exchange.row, capture.start_ns))
        frames += (exchange.request is not None) + (exchange.response is not None)
    seconds, allowed = time.thread_time() - start, ANY_SIZE + seconds_a_megabyte(case) * len(case.data) / (1 << 20)
    if seconds > allowed and not instrumented_kernel.IS_USED:
        raise CostError(f"{seconds:.2f} s for {len(case.data):,} bytes, of which {allowed:.2f} s are allowed")
    streams.check()
    assert packets == capture.packets
    assert case.packets in (None, packets), f"{packets:,} of {case.packets:,} packets"
    assert case.frames in (None, frames), f"{frames:,} of {case.frames:,} frames"
    check_problems(capture, len(case.files))
    check_rows(capture)
    ways = [rare_faces] if case.secrets and zlib.crc32(case.data) % RARE == 0 else []
    shown = leak(capture, [bytes.fromhex(each) for each in case.secrets or ()], *ways)
    assert not shown, f"a secret: {shown.split()[0]}"


def seconds_a_megabyte(case: Case) -> float:
    """What a case of its kind may cost."""
    return OF_ORPHANS if case.kind in ("orphans", "both") else SECONDS_A_MEGABYTE


def check_words(words: str) -> None:
    """A refusal is one line."""
    assert "\n" not in words


def check_problems(capture: Capture, files: int) -> None:
    """What is said about the files is some lines, whatever is wrong with them."""
    assert all("\n" not in problem.message for problem in capture.problems)
    assert len(capture.problems) <= MOST_PROBLEMS * files, f"{len(capture.problems):,} problems"


def check_rows(capture: Capture) -> None:
    """Rows can be shown in every form: all, or so many of them from first to last."""
    for number in range(0, len(capture), 1 + len(capture) // MOST_ROWS):
        exchange = capture.exchange(number)
        assert exchange.row.number == number + 1
        assert not HOSTILE.search(row_line(exchange.row, capture.start_ns))
        assert not any(HOSTILE.search(line) for line in tree_lines(exchange, capture.start_ns))
        check_line(exchange)
        for message in filter(None, (exchange.request, exchange.response)):
            check_message(message)
