"""Finds the next record behind missing bytes, and how much plaintext is missing.

A record's sequence number is not on the wire, but a cipher opens a record with the right one alone. So each place that
looks like a record's header is tried with all numbers of records that the missing bytes can have been: the one that
opens it says how many they were, and with it the size of their plaintext, as each record has the same overhead.
Where it has not (CBC), the size is an estimate.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.tls.record_parts import HEADER, LONGEST_RECORD, BadRecordError

if TYPE_CHECKING:
    from dissector.tls.record_ciphers import RecordCipher

_RECORD: Final = re.compile(rb"[\x15-\x17]\x03[\x01-\x03]")
MOST_TRIALS: Final = 1 << 18
"""Sequence numbers that are tried behind one gap: a third of a second. Past it the rest of the direction is lost."""


class Found(NamedTuple):
    """Where a record begins; or if `cipher` is None, up to where none does."""

    at: int
    cipher: int | None = None
    """Which of the ciphers opens it, by number."""
    sequence: int = 0
    lost_plaintext: int = 0


class RecordSearch:
    """The search in one direction, whose bytes are missing from a stream offset on."""

    def __init__(self, lost_from: int) -> None:
        self.lost_from = lost_from
        self.trials = 0

    def find(
        self,
        data: bytes,
        at: int,
        offset: int,
        ciphers: "Sequence[tuple[RecordCipher, int]]",
        overhead: int | None,
    ) -> Found:
        """Search `data` from `at` on, which is stream offset `offset`. `ciphers` are those that a record may have, with
        their next sequence numbers; `overhead` is that of the records before, if there were any."""
        view = memoryview(data)
        for match in _RECORD.finditer(data, at):
            place = match.start()
            if place + HEADER > len(data):
                return Found(place)
            size = int.from_bytes(data[place + 3 : place + HEADER], "big")
            if HEADER + size > LONGEST_RECORD:
                continue
            stop = place + HEADER + size
            if stop > len(data):
                return Found(place)
            lost = offset + place - at - self.lost_from
            header, fragment = data[place : place + HEADER], view[place + HEADER : stop]
            found = self._opened(header, fragment, lost, ciphers, overhead)
            if found is not None:
                return found._replace(at=place)
        return Found(max(at, len(data) - HEADER + 1))

    def _opened(
        self,
        header: bytes,
        fragment: memoryview,
        lost: int,
        ciphers: "Sequence[tuple[RecordCipher, int]]",
        overhead: int | None,
    ) -> Found | None:
        least = -(-lost // LONGEST_RECORD)
        for number, (cipher, sequence) in enumerate(ciphers):
            usual = overhead if number == 0 and overhead else cipher.overhead
            for count in range(least if number == 0 else 0, min(lost // cipher.overhead, least + MOST_TRIALS) + 1):
                self.trials += 1
                if self.trials > MOST_TRIALS:
                    return None
                try:
                    cipher.open(header, fragment, sequence + count)
                except BadRecordError:
                    continue
                return Found(0, number, sequence + count, max(0, lost - count * usual))
        return None
