"""Finds the keys of TLS 1.3 connections whose hellos were not captured: which secret of the key log, and where in it.

Without its client random nothing says which secrets of a log are those of a connection; a record says it itself, as one
secret alone opens it, with one sequence number. So a record is tried with the secrets that no other connection of the
capture has, first with the low numbers of all of them. TLS 1.2 can't be found like this: its keys need both hellos.

Invariants: work is bounded, for a connection and for a capture, and a search that was ended by it is counted; a place
is found only where the tag of a record confirmed it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from dissector.tls.connection import Epoch, KeyPhase, Side, TlsConnection
from dissector.tls.key_log import KeyLog
from dissector.tls.record_parts import APPLICATION_DATA, HEADER, LONGEST_RECORD, TLS_1_3
from dissector.tls.suites import CipherKind, CipherSuite, suites_of_secret

_COST: Final = 32
"""How many numbers with AES-GCM are as much work as one with another cipher."""
ROUNDS: Final = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
"""Sequence numbers below which a search looks: of all secrets before it goes on to the next one."""
_MOST_OF_HANDSHAKE: Final = 16
"""Encrypted records of a handshake."""
_FIRST: Final = re.compile(rb"[\x14-\x17]\x03[\x01-\x03]")
_NONCE: Final = 8
MOST_RECORDS: Final = 64
"""Records at the beginning of which the last one is searched for."""
_LABEL: Final = re.compile(r"(CLIENT|SERVER)_(HANDSHAKE_)?TRAFFIC_SECRET(?:_(\d+))?$")


class EncryptedRecord(NamedTuple):
    """A record, by which a place is found."""

    header: bytes
    fragment: bytes


class LatePlace(NamedTuple):
    """What a record is encrypted with."""

    client_random: bytes
    side: Side
    suite: CipherSuite
    epoch: Epoch
    sequence: int


class _Candidate(NamedTuple):
    """A secret of the key log, by its name: this has no secret in its text."""

    client_random: bytes
    label: str
    suite: CipherSuite

    @property
    def side(self) -> Side:
        return Side[self.label.partition("_")[0]]

    @property
    def epoch(self) -> Epoch:
        match = _LABEL.match(self.label)
        assert match is not None
        return Epoch(KeyPhase.HANDSHAKE, 0) if match[2] else Epoch(KeyPhase.TRAFFIC, int(match[3]))


class LateStarts:
    """The searches of a capture."""

    def __init__(self, keys: KeyLog, most: int) -> None:
        """`most` is how many sequence numbers may be tried, half of them for one connection."""
        self._keys = keys
        self._most_of_one = most // 2
        self._most = most
        self.given_up = 0
        """Searches that were ended before all secrets had been tried."""

    def find(
        self,
        records: Sequence[EncryptedRecord],
        connection: TlsConnection,
        side: Side | None,
        others: Iterable[TlsConnection],
    ) -> LatePlace | None:
        """Return what the first one of some records is encrypted with; its sequence number is negative if an epoch
        begins behind it. `side` is the end that sent them, if it is known, and `others` are those of the
        capture."""
        if not records or connection.version not in (None, TLS_1_3) or _is_tls_1_2(records):
            return None
        if connection.is_found:
            candidates = list(self._of_connection(connection, side))
        else:
            candidates = list(self._untried(connection, {other.client_random for other in others}))
        found = self._find(records[-1], candidates)  # the last one, as the first may be of a handshake
        return None if found is None else found._replace(sequence=found.sequence - len(records) + 1)

    def _find(self, record: EncryptedRecord, candidates: list[_Candidate]) -> LatePlace | None:
        if not candidates:
            return None
        from dissector.tls.sequence_search import SequenceSearch

        budget, low = min(self._most_of_one, self._most), 0
        for high in ROUNDS:
            for each in candidates:
                secret = self._keys.secrets(each.client_random)[each.label]
                cost = 1 if each.suite.kind is CipherKind.GCM else _COST
                first, end = low // cost, high // cost
                if each.epoch.phase is KeyPhase.HANDSHAKE:
                    end = min(end, _MOST_OF_HANDSHAKE)
                if first >= end:
                    continue
                trials = (end - first) * cost
                if trials > budget:
                    self.given_up += 1
                    return None
                budget -= trials
                self._most -= trials
                number = SequenceSearch(each.suite, secret).find(record.header, record.fragment, first, end)
                if number is not None:
                    return LatePlace(each.client_random, each.side, each.suite, each.epoch, number)
            low = high
        return None

    def _of_connection(self, connection: TlsConnection, side: Side | None) -> Iterator[_Candidate]:
        """The secrets that a side of a connection may have, whose client random is known by now."""
        random, suite = connection.client_random, connection.suite
        assert random is not None
        assert suite is not None
        for label in self._keys.secrets(random):
            match = _LABEL.match(label)
            if match and side is not None and match[1] == side.name:
                yield _Candidate(random, label, suite)

    def _untried(self, connection: TlsConnection, others: Set[bytes | None]) -> Iterator[_Candidate]:
        """The secrets that came since the last search for a connection, of all connections but the others."""
        for random, label in self._keys.traffic_secrets(connection.tried_secrets):
            connection.tried_secrets += 1
            if random not in others:
                suites = suites_of_secret(self._keys.secrets(random)[label])
                for suite in suites if connection.suite is None else [connection.suite]:
                    yield _Candidate(random, label, suite)


def records_in(data: bytes) -> list[EncryptedRecord]:
    """Return the first encrypted records of bytes that begin with a record."""
    at = 0
    found: list[EncryptedRecord] = []
    while at + HEADER <= len(data) and len(found) < MOST_RECORDS:
        stop = at + HEADER + int.from_bytes(data[at + 3 : at + HEADER], "big")
        if stop > len(data):
            break
        if data[at] == APPLICATION_DATA:
            found.append(EncryptedRecord(data[at : at + HEADER], data[at + HEADER : stop]))
        at = stop
    return found


def _is_tls_1_2(records: Sequence[EncryptedRecord]) -> bool:
    """Whether records have the nonces of AEAD in TLS 1.2, which count (RFC 5288, 3)."""
    nonces = [int.from_bytes(each.fragment[:_NONCE], "big") for each in records[-2:]]
    return len(nonces) == 2 and nonces[0] + 1 == nonces[1]


def first_record(data: bytes) -> int | None:
    """Return where the first record begins in bytes from the middle of a stream: -1 if there is none, None if more
    bytes are needed. A record is believed if it is whole and another header, or the end of the data, is behind it."""
    if data.startswith(b"\0\0"):  # sizes of plain protocols begin so, ciphertext hardly ever
        return -1
    for match in _FIRST.finditer(data, 0, LONGEST_RECORD + 2):
        if _is_record(data, match.start()):
            return match.start()
    return None if len(data) < 2 * LONGEST_RECORD else -1


def _is_record(data: bytes, at: int) -> bool:
    size = int.from_bytes(data[at + 3 : at + HEADER], "big")
    end = at + HEADER + size
    if not size or HEADER + size > LONGEST_RECORD or end > len(data):
        return False
    return end == len(data) or (end + 2 < len(data) and _FIRST.match(data, end) is not None)
