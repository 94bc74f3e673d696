"""`kdissect export`: chosen exchanges as a pcapng capture, with the packets that carried them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.capture.files import STDIN
from dissector.capture_file import Capture
from dissector.cli.filtering import nothing_fits, wanted
from dissector.cli.outcome import NEGATIVE, complain
from dissector.cli.progress import read_with_progress
from dissector.cli.show import nothing_found
from dissector.conversation import Packet, pcapng
from dissector.exporting import packets_of

LARGEST: Final = 10**15
"""A row's number: more than any capture has."""


def export(files: Sequence[str], out: str, chosen: str | None, filter: str | None, ports: frozenset[int]) -> int:  # noqa: A002
    """Write; the exit code: 0, or 1 where no exchange was chosen. `chosen` is as `ranges_of` takes it, None for all; of
    these, the rows that fit the filter."""
    ranges = None if chosen is None else ranges_of(chosen)
    fitting = wanted(filter)
    if STDIN in files:
        raise CaptureError("standard input: export reads a capture twice: save it to a file first")
    if any(_same(name, out) for name in files):
        raise CaptureError(f"{out}: is read from: choose another name to write to")
    with Capture(files, ports=ports) as capture:
        read_with_progress(capture)
        for problem in capture.problems:
            complain(problem.message)
        if not len(capture):
            complain(nothing_found(capture))
            return NEGATIVE
        rows: Sequence[int] = range(len(capture)) if ranges is None else _rows(ranges, len(capture))
        if fitting is not None:
            rows = capture.matching(fitting, np.asarray(rows, np.int64)).tolist()
            if not rows:
                complain(nothing_fits(fitting, len(capture)))
                return NEGATIVE
        if not any(capture.spans(number) for number in rows):
            complain(f"no row {chosen} that packets carried: there are {len(capture):,} rows")
            return NEGATIVE
        count = _save(packets_of(capture, rows), out, f"{len(rows):,} rows of {', '.join(capture.names)}")
    complain(f"{out}: {len(rows):,} rows, {count:,} packets")
    return 0


def ranges_of(text: str) -> list[range]:
    """``3,10-20,99-``: row numbers from 1. Raises `CaptureError` with the part that is none."""
    return [_range(part.strip()) for part in text.split(",")]


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    try:
        low, high = int(first), int(last) if last else LARGEST if dash else int(first)
    except ValueError:
        low, high = 0, 0
    if not 0 < low <= high:
        raise CaptureError(f"--rows: {part!r} is no row number, nor a range as 10-20")
    return range(low, high + 1)


def _rows(ranges: list[range], count: int) -> list[int]:
    """Rows from 0, in order, each once."""
    found = {number - 1 for part in ranges for number in range(part.start, min(part.stop, count + 1))}
    return sorted(found)


def _same(name: str, out: str) -> bool:
    try:
        return Path(name).samefile(out)
    except (OSError, ValueError):
        return False


def _save(packets: Iterator[Packet], out: str, words: str) -> int:
    """Write the file; how many packets it has."""
    count = 0

    def counted() -> Iterator[Packet]:
        nonlocal count
        for packet in packets:
            count += 1
            yield packet

    try:
        with Path(out).open("wb") as file:
            file.writelines(pcapng(counted(), f"kdissect export: {words}"))
    except OSError as error:
        raise CaptureError(f"{out}: {(error.strerror or str(error)).lower()}") from None
    return count
