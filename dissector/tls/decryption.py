"""One direction of a TLS connection: its records, read one after the other and decrypted.

A direction stops at a record for which something of its peer is missing, and goes on when that is there: a batch has
one direction after the other, so that a client's whole flight comes before the ServerHello that it answers.

Invariants:
  * records are read in order, each once, however the stream is cut into runs and batches;
  * a record that can't be opened, or of which bytes are missing, becomes a gap of its plaintext's size, where that is
    known (`record_search`); reading goes on behind it;
  * nothing but what the key opened, and its tag confirmed, is plaintext.
"""

import struct
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE
from dissector.core.store import Store
from dissector.tls.connection import Alert, Epoch, KeyPhase, TlsConnection
from dissector.tls.direction_buffers import ADDRESS, PACKET, SIZE, START, TIME, PendingRuns, Pieces
from dissector.tls.direction_keys import DirectionKeys
from dissector.tls.handshake import HandshakeReader, HandshakeType
from dissector.tls.late_start import EncryptedRecord, first_record, records_in
from dissector.tls.record_parts import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEADER,
    LONGEST_FRAGMENT,
    LONGEST_RECORD,
    BadRecordError,
)
from dissector.tls.record_search import RecordSearch

_head: Final = struct.Struct(">BHH").unpack_from


class TlsDirection:
    """What is read of a direction, and how far. `pieces` are its plaintext, until the stage takes them."""

    def __init__(self, connection: TlsConnection, direction: int, *, is_aligned: bool = True) -> None:
        self.direction = direction
        self.pending = PendingRuns()
        self.pieces = Pieces()
        self._read_runs: list[Int64] = []
        self._runs_end = 0
        """Offset in the TCP stream up to which they are noted."""
        self._last_seen: Int64 = np.zeros((2, 1), np.int64)
        """Time and packet of the last run."""
        self.records = 0
        """Records opened."""
        self.bad_records = 0
        """Records that no key opens."""
        self.is_stopped = False
        """Whether the next record has to wait for the peer or for keys."""
        self.is_garbled = False
        """Whether bytes came that are no TLS."""
        self.is_aligned = is_aligned
        """Whether `_at` is where a record begins. In a late connection it has to be found."""
        self.is_placed = False
        """Whether it is known what its first record is encrypted with, if the connection is a late one."""
        self._connection = connection
        self._at = 0
        """Offset in the TCP stream of the next record."""
        self._keys = DirectionKeys(connection, direction)
        self._handshake = HandshakeReader()
        self._search: RecordSearch | None = None
        """While the place of the next record is unknown."""
        self._overhead: int | None = None
        """Bytes that the last record had besides its plaintext."""

    @property
    def at(self) -> int:
        """Offset in the TCP stream up to which records are read."""
        return self._at

    def read(self, store: Store) -> bool:
        """Read on as far as bytes and keys allow; return whether there was anything."""
        before = self._at
        if not self._keys.restore():
            return False
        while not self._read_stretch(store):
            pass
        self.pieces.note_packets(self.pending.table(), self._last_seen)
        if self._connection.is_opened:
            self._last_seen = self.pending.table()[[TIME, PACKET], -1:] if len(self.pending) else self._last_seen
            self._note_runs()
            self.pending.drop_before(self._at)
        return self._at > before

    def finish(self) -> None:
        """Nothing more comes: what is not read is lost."""
        table = self.pending.table()
        if table.shape[1]:
            end = int(table[START, -1] + table[SIZE, -1])
            self._lose(end - self._at)
            self._at = end
        if self._connection.is_late and self._keys.epoch is None:
            self.pieces.add_gap(self._at, self._at)
        elif self._search is not None and self.pieces.plain_end:
            lost = self._at - self._search.lost_from
            self.pieces.add_gap(lost - (self._overhead or 0) * -(-lost // LONGEST_RECORD), self._at)
        self.pieces.note_packets(self.pending.table(), self._last_seen)

    def take(self) -> Pieces:
        """Take the plaintext that was read."""
        taken, self.pieces = self.pieces, Pieces(self.pieces.plain_end)
        return taken

    def take_runs(self) -> Int64:
        """Take the runs that came, gaps left out: stream offset, size, address and packet, `(4, n)`."""
        runs, self._read_runs = self._read_runs, []
        return np.concatenate([np.zeros((4, 0), np.int64), *runs], axis=1)

    def _note_runs(self) -> None:
        """Note the runs that came since."""
        table = self.pending.table()
        new = table[[START, SIZE, ADDRESS, PACKET]][:, table[START] >= self._runs_end]
        if new.shape[1]:
            self._runs_end = int(new[0, -1] + new[1, -1])
            self._read_runs.append(new[:, new[2] != NOWHERE])

    def _read_stretch(self, store: Store) -> bool:
        """Read the bytes up to the next gap; return whether that is all for now."""
        stretch = self.pending.stretch(self._at, store)
        if stretch is None:
            return True
        if stretch.missing:
            self._lose(stretch.missing)
            self._at += stretch.missing
            return False
        if not self.is_aligned:
            return self._align(stretch.data, is_cut=not stretch.is_last)
        used, is_blocked = self._read_records(stretch.data)
        self._at += used
        if is_blocked or stretch.is_last:
            return True
        rest = len(stretch.data) - used  # of a record that the gap cuts
        if rest:
            self._lose(rest)
            self._at += rest
        return False

    def _align(self, data: bytes, *, is_cut: bool) -> bool:
        """Find the first record in bytes from the middle of the stream, behind which bytes are missing if they are cut;
        return whether that is all for now."""
        place = first_record(data)
        if place is None and is_cut:
            self._at += len(data)
            return False
        if place is not None and place >= 0:
            self._at += place
            self.is_aligned = True
            return False
        self.is_garbled = place is not None
        return True

    def first_records(self, store: Store) -> list[EncryptedRecord]:
        """Return the encrypted records from where a direction of a late connection is stopped, as far as they are there
        without a gap."""
        stretch = self.pending.stretch(self._at, store) if self.is_stopped else None
        return [] if stretch is None else records_in(stretch.data)

    def place(self, epoch: Epoch, sequence: int) -> None:
        """Go on with the record where this direction of a late connection is stopped, which has that sequence number.
        With a negative one it is of an earlier epoch: the handshake is read on from there."""
        self.is_placed = True
        ciphers = self._connection.ciphers(self.direction, epoch)
        if sequence < 0 or not ciphers:
            return
        self._keys.use(epoch, ciphers[0], sequence)
        if sequence:
            overhead = ciphers[0].overhead
            self.pieces.add_gap(self._at - overhead * min(sequence, self._at // overhead), self._at)

    def give_up(self) -> bool:
        """Count the records of a direction of a late connection that no key opens; return whether it can go on."""
        self.is_placed = self.is_stopped
        if self.is_stopped:
            self._keys.use(Epoch(KeyPhase.TRAFFIC, 0), None)
        return self.is_stopped

    def _lose(self, size: int) -> None:
        """Bytes of the TCP stream are missing at `_at`."""
        if size > 0 and self._keys.epoch is None and self._connection.lose_hello():
            self.is_aligned = False
        elif size > 0:
            self._search = self._search or RecordSearch(self._at)
            self._handshake = HandshakeReader()

    def _read_records(self, data: bytes) -> tuple[int, bool]:
        """Read the records at the beginning of `data`; return how many bytes they have, and whether the next one has to
        wait for the peer or for keys."""
        view, at, end = memoryview(data), 0, len(data)
        self.is_stopped = False
        while end - at >= HEADER:
            at = self._read_data(data, view, at)
            if end - at < HEADER:
                break
            if self._search is not None:
                at, is_found = self._find_place(data, at)
                if not is_found:
                    return at, False
            kind, version, size = _head(data, at)
            if not (CHANGE_CIPHER_SPEC <= kind <= 24 and version >> 8 == 3 and size <= LONGEST_FRAGMENT):
                self.is_garbled |= not self._connection.is_opened
                self._search = RecordSearch(self._at + at)
                if self.is_garbled:
                    return at, True
                continue
            stop = at + HEADER + size
            if stop > end:
                break
            if not self._read_record(kind, data[at : at + HEADER], view[at + HEADER : stop], self._at + at):
                self.is_stopped = True
                return at, True
            at = stop
        return at, False

    def _read_data(self, data: bytes, view: memoryview, at: int) -> int:
        """Read records as long as they are the application data of the current key, the common case by far; return
        where that ends."""
        keys, cipher = self._keys, self._keys.cipher
        if cipher is None or self._search is not None or not self._connection.is_opened:
            return at
        decrypt, sequence, base, last = cipher.open, keys.sequence, self._at, len(data)
        texts, records, ends = [], [], []
        while last - at >= HEADER:
            kind, _, size = _head(data, at)
            stop = at + HEADER + size
            if kind != APPLICATION_DATA or stop > last:
                break
            try:
                kind, text = decrypt(data[at : at + HEADER], view[at + HEADER : stop], sequence)
            except BadRecordError:
                break
            if kind != APPLICATION_DATA:
                break
            sequence += 1
            texts.append(text)
            records.append(base + at)
            ends.append(base + stop)
            at = stop
        if texts:
            keys.sequence = sequence
            self._overhead = ends[-1] - records[-1] - len(texts[-1])
            self.records += len(texts)
            self.pieces.extend(texts, records, ends)
        return at

    def _find_place(self, data: bytes, at: int) -> tuple[int, bool]:
        """Find the next record behind a gap; return where it is, or up to where it is not."""
        assert self._search is not None
        keys, later = self._keys, self._keys.later()
        current = [(keys.cipher, keys.sequence)] if keys.cipher is not None else []
        if keys.cipher is not None and keys.cipher.chained is not None:
            return len(data), False
        candidates = [*current, *((cipher, 0) for _, cipher in later)]
        found = self._search.find(data, at, self._at + at, candidates, self._overhead)
        if found.cipher is None:
            return found.at, False
        is_begun = found.cipher < len(current) or (keys.epoch is not None and keys.epoch.phase is KeyPhase.TRAFFIC)
        if found.cipher >= len(current):
            keys.use(*later[found.cipher - len(current)])
        keys.sequence = found.sequence
        is_of_handshake = keys.epoch is not None and keys.epoch.phase is KeyPhase.HANDSHAKE
        self._search = None
        if not is_of_handshake and (is_begun or found.sequence):  # else all that is missing is of the handshake
            self.pieces.add_gap(found.lost_plaintext, self._at + found.at)
        return found.at, True

    def _read_record(self, kind: int, header: bytes, fragment: memoryview, offset: int) -> bool:
        """Read one record; return whether that was possible now."""
        keys, cipher = self._keys, self._keys.cipher
        if cipher is None and keys.epoch is not None:
            self._add_bad_record(offset)
            return True
        if cipher is None:
            return self._read_first(kind, header, fragment, offset)
        try:
            kind, text = cipher.open(header, fragment, keys.sequence)
        except BadRecordError:
            return self._read_of_next_epoch(header, fragment, offset, kind)
        if kind == APPLICATION_DATA:
            keys.sequence += 1
            self._add_text(text, offset, offset + HEADER + len(fragment))
            return True
        return self._take(kind, text, offset, len(fragment))

    def _read_first(self, kind: int, header: bytes, fragment: memoryview, offset: int) -> bool:
        """Read a record while nothing is encrypted, or the first that is."""
        if kind == CHANGE_CIPHER_SPEC:
            return self._change_cipher()
        if kind != APPLICATION_DATA:
            if kind == HANDSHAKE:
                self._read_handshake(bytes(fragment))
            elif kind == ALERT and len(fragment) == 2:
                self._connection.add_alert(Alert(fragment[1], self.direction, is_encrypted=False))
            return True
        connection = self._connection
        if not connection.can_be_opened or connection.side(self.direction) is None:
            return False
        if connection.is_late and not self.is_placed:
            return False
        return self._read_of_next_epoch(header, fragment, offset, kind)

    def _read_of_next_epoch(self, header: bytes, fragment: memoryview, offset: int, kind: int) -> bool:
        """Try the keys of later epochs, which begin with sequence number 0: a KeyUpdate or the end of a handshake may
        be lost, early data may be refused. What no key opens is counted, and the next record is tried again."""
        if kind == CHANGE_CIPHER_SPEC:  # TLS 1.3 has it for middleboxes alone
            return True
        for epoch, cipher in self._keys.later():
            try:
                inner, text = cipher.open(header, fragment, 0)
            except BadRecordError:
                continue
            self._keys.use(epoch, cipher)
            return self._take(inner, text, offset, len(fragment))
        if self._keys.cipher is None and self._connection.version is None:
            return False  # early data, before the ServerHello: its suite may not be known
        self._add_bad_record(offset)
        return True

    def _take(self, kind: int, text: bytes, offset: int, size: int) -> bool:
        """Take the plaintext of a record."""
        if kind == CHANGE_CIPHER_SPEC and not self._change_cipher():
            return False
        if kind != CHANGE_CIPHER_SPEC:
            self._keys.sequence += 1
        self._connection.is_opened = True
        if kind == APPLICATION_DATA:
            self._add_text(text, offset, offset + HEADER + size)
        else:
            self.records += 1
            if kind == HANDSHAKE:
                self._read_handshake(text)
            elif kind == ALERT and len(text) == 2:
                self._connection.add_alert(Alert(text[1], self.direction, is_encrypted=True))
        return True

    def _change_cipher(self) -> bool:
        """Use the keys that go with this ChangeCipherSpec; return whether its hellos and the keys are there."""
        connection = self._connection
        if connection.is_tls_1_3:
            return True
        if not self._keys.change():
            return False
        self._handshake = HandshakeReader()
        return True

    def _read_handshake(self, data: bytes) -> None:
        for kind, body in self._handshake.feed(data):
            if kind == HandshakeType.KEY_UPDATE:
                self._keys.update()
            else:
                self._connection.add_message(self.direction, kind, body)

    def _add_text(self, text: bytes, record: int, end: int) -> None:
        self.records += 1
        if text:
            self._overhead = end - record - len(text)
            self.pieces.add(text, record, end)

    def _add_bad_record(self, offset: int) -> None:
        self.bad_records += 1
        if self._connection.is_opened:  # else no key fits, and none will
            self._search = RecordSearch(offset)
