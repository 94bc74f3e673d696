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
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE
from dissector.core.store import Store
from dissector.tls.connection import TLS_1_3, Alert, Epoch, TlsConnection
from dissector.tls.errors import BadRecordError
from dissector.tls.handshake import HandshakeReader, parse_client_hello, parse_server_hello
from dissector.tls.pending_runs import ADDRESS, PACKET, SIZE, START, TIME, PendingRuns
from dissector.tls.record_search import LONGEST_RECORD, RecordSearch

if TYPE_CHECKING:
    from dissector.tls.record_ciphers import RecordCipher

HEADER: Final = 5
LONGEST_FRAGMENT: Final = (1 << 14) + 2048
"""Bytes of a record behind its header: 2^14 and what protection may add (RFC 5246, 6.2.3)."""
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
CLIENT_HELLO, SERVER_HELLO, ENCRYPTED_EXTENSIONS, CERTIFICATE, KEY_UPDATE = 1, 2, 8, 11, 24
_head: Final = struct.Struct(">BHH").unpack_from


class Pieces:
    """Plaintext of records and gaps, in order, as lists of equal length."""

    def __init__(self) -> None:
        self.texts: list[bytes | None] = []
        """None for a gap."""
        self.sizes: list[int] = []
        self.records: list[int] = []
        """Offset of each record in the TCP stream, and where it ends."""
        self.ends: list[int] = []

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, text: bytes | None, size: int, record: int, end: int) -> None:
        """Append a piece."""
        self.texts.append(text)
        self.sizes.append(size)
        self.records.append(record)
        self.ends.append(end)


class TlsDirection:
    """What is read of a direction, and how far. `pieces` are its plaintext, until the stage takes them."""

    def __init__(self, connection: TlsConnection, direction: int) -> None:
        self.direction = direction
        self.pending = PendingRuns()
        self.pieces = Pieces()
        self._seen: list[Int64] = []
        self._last_seen: Int64 = np.zeros((2, 1), np.int64)
        """Time and packet of the last run."""
        self.plain_end = 0
        """Bytes of plaintext so far, gaps included."""
        self.records = 0
        """Records opened."""
        self.bad_records = 0
        """Records that no key opens."""
        self.is_stopped = False
        """Whether the next record has to wait for the peer or for keys."""
        self.is_garbled = False
        """Whether bytes came that are no TLS."""
        self._connection = connection
        self._at = 0
        """Offset in the TCP stream of the next record."""
        self._epoch: Epoch | None = None
        self._cipher: RecordCipher | None = None
        self._sequence = 0
        self._changes = 0
        """ChangeCipherSpec messages of a version before 1.3."""
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
        before, read = self._at, len(self.pieces)
        while not self._read_stretch(store):
            pass
        self._note_packets(read)
        if self._connection.is_opened:
            self._last_seen = self.pending.table()[[TIME, PACKET], -1:] if len(self.pending) else self._last_seen
            self.pending.drop_before(self._at)
        return self._at > before

    def finish(self) -> None:
        """Nothing more comes: what is not read is lost."""
        table, read = self.pending.table(), len(self.pieces)
        if table.shape[1]:
            end = int(table[START, -1] + table[SIZE, -1])
            self._lose(end - self._at)
            self._at = end
        if self._search is not None and self.plain_end:
            lost = self._at - self._search.lost_from
            self._add_gap(lost - (self._overhead or 0) * -(-lost // LONGEST_RECORD), self._at)
        self._note_packets(read)

    def take(self) -> tuple[Pieces, Int64]:
        """Take the plaintext that was read: its pieces, and time and packet of each, `(2, n)`."""
        pieces, seen = self.pieces, self._seen
        self.pieces, self._seen = Pieces(), []
        return pieces, np.concatenate(seen, axis=1)

    def _note_packets(self, first: int) -> None:
        """Find the packet with the last byte of each piece's record, from piece `first` on."""
        ends = np.array(self.pieces.ends[first:], np.int64)
        if len(ends):
            table = self.pending.table()
            rows = np.searchsorted(table[START] + table[SIZE], ends - 1, side="right")
            self._seen.append(np.append(table[[TIME, PACKET]], self._last_seen, axis=1)[:, rows])

    def _read_stretch(self, store: Store) -> bool:
        """Read the bytes up to the next gap; return whether that is all for now."""
        table = self.pending.table()
        starts = table[START]
        first = int((starts + table[SIZE]).searchsorted(self._at, side="right"))
        if first == table.shape[1]:
            return True
        if table[ADDRESS, first] == NOWHERE:
            end = int(starts[first] + table[SIZE, first])
            self._lose(end - self._at)
            self._at = end
            return False
        gaps = (table[ADDRESS, first:] == NOWHERE).nonzero()[0]
        stop = first + int(gaps[0]) if len(gaps) else table.shape[1]
        skipped = self._at - int(starts[first])
        addresses, sizes = table[ADDRESS, first:stop].copy(), table[SIZE, first:stop].copy()
        addresses[0] += skipped
        sizes[0] -= skipped
        data = store.join(addresses, sizes)
        used, is_blocked = self._read_records(data)
        self._at += used
        if is_blocked or stop == table.shape[1]:
            return True
        rest = len(data) - used  # of a record that the gap cuts
        if rest:
            self._lose(rest)
            self._at += rest
        return False

    def _lose(self, size: int) -> None:
        """Bytes of the TCP stream are missing at `_at`."""
        if size > 0:
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
        cipher = self._cipher
        if cipher is None or self._search is not None or not self._connection.is_opened:
            return at
        decrypt, sequence, base, last = cipher.open, self._sequence, self._at, len(data)
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
            sizes = list(map(len, texts))
            self._sequence = sequence
            self._overhead = ends[-1] - records[-1] - sizes[-1]
            self.records += len(texts)
            self.plain_end += sum(sizes)
            self.pieces.texts += texts
            self.pieces.sizes += sizes
            self.pieces.records += records
            self.pieces.ends += ends
        return at

    def _find_place(self, data: bytes, at: int) -> tuple[int, bool]:
        """Find the next record behind a gap; return where it is, or up to where it is not."""
        assert self._search is not None
        later = self._next_epochs()
        current = [(self._cipher, self._sequence)] if self._cipher is not None else []
        if self._cipher is not None and self._cipher.is_chained:
            return len(data), False
        candidates = [*current, *((cipher, 0) for _, cipher in later)]
        found = self._search.find(data, at, self._at + at, candidates, self._overhead)
        if found.cipher is None:
            return found.at, False
        if found.cipher >= len(current):
            self._epoch, self._cipher = later[found.cipher - len(current)]
        self._sequence = found.sequence
        self._search = None
        self._add_gap(found.lost_plaintext, self._at + found.at)
        return found.at, True

    def _next_epochs(self) -> "list[tuple[Epoch, RecordCipher]]":
        epoch = self._epoch
        if epoch is not None and epoch.phase is None:
            return []
        return [
            (each, cipher)
            for each in self._connection.epochs_after(epoch)
            for cipher in self._connection.ciphers(self.direction, each)
        ]

    def _read_record(self, kind: int, header: bytes, fragment: memoryview, offset: int) -> bool:
        """Read one record; return whether that was possible now."""
        cipher = self._cipher
        if cipher is None and self._epoch is not None:
            self._add_bad_record(offset)
            return True
        if cipher is None:
            return self._read_first(kind, header, fragment, offset)
        try:
            kind, text = cipher.open(header, fragment, self._sequence)
        except BadRecordError:
            return self._read_of_next_epoch(header, fragment, offset, kind)
        if kind == APPLICATION_DATA:
            self._sequence += 1
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
        if not self._connection.can_be_opened or self._connection.side(self.direction) is None:
            return False
        return self._read_of_next_epoch(header, fragment, offset, kind)

    def _read_of_next_epoch(self, header: bytes, fragment: memoryview, offset: int, kind: int) -> bool:
        """Try the keys of later epochs, which begin with sequence number 0: a KeyUpdate or the end of a handshake may
        be lost, early data may be refused. What no key opens is counted, and the next record is tried again."""
        if kind == CHANGE_CIPHER_SPEC:  # TLS 1.3 has it for middleboxes alone
            return True
        epochs = self._next_epochs()
        for epoch, cipher in epochs:
            try:
                inner, text = cipher.open(header, fragment, 0)
            except BadRecordError:
                continue
            self._epoch, self._cipher, self._sequence = epoch, cipher, 0
            return self._take(inner, text, offset, len(fragment))
        if self._cipher is None and self._connection.version is None:
            return False  # early data, before the ServerHello: its suite may not be known
        self._add_bad_record(offset)
        return True

    def _take(self, kind: int, text: bytes, offset: int, size: int) -> bool:
        """Take the plaintext of a record."""
        if kind == CHANGE_CIPHER_SPEC and not self._change_cipher():
            return False
        if kind != CHANGE_CIPHER_SPEC:
            self._sequence += 1
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
        if connection.version == TLS_1_3:
            return True
        if not connection.is_ready(self._changes) or not connection.can_be_opened:
            return False
        epoch = Epoch(None, self._changes)
        self._changes += 1
        self._epoch, self._sequence = epoch, 0
        self._cipher = next(iter(connection.ciphers(self.direction, epoch)), None)
        self._handshake = HandshakeReader()
        return True

    def _read_handshake(self, data: bytes) -> None:
        for kind, body in self._handshake.feed(data):
            if kind == CLIENT_HELLO and (client_hello := parse_client_hello(body)) is not None:
                self._connection.add_client_hello(self.direction, client_hello)
            elif kind == SERVER_HELLO and (server_hello := parse_server_hello(body)) is not None:
                self._connection.add_server_hello(self.direction, server_hello)
            elif kind == ENCRYPTED_EXTENSIONS:
                self._connection.add_encrypted_extensions(body)
            elif kind == CERTIFICATE:
                self._connection.add_certificate(self.direction, body)
            elif kind == KEY_UPDATE and self._epoch is not None and self._epoch.phase is not None:
                self._epoch, self._cipher = next(iter(self._next_epochs()), (self._epoch, None))
                self._sequence = 0

    def _add_text(self, text: bytes, record: int, end: int) -> None:
        self.records += 1
        if text:
            self._overhead = end - record - len(text)
            self.pieces.add(text, len(text), record, end)
            self.plain_end += len(text)

    def _add_gap(self, size: int, offset: int) -> None:
        if size > 0:
            self.pieces.add(None, size, offset, offset)
            self.plain_end += size

    def _add_bad_record(self, offset: int) -> None:
        self.bad_records += 1
        if self._connection.is_opened:  # else no key fits, and none will
            self._search = RecordSearch(offset)
