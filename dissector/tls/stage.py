"""The TLS stage: runs of encrypted directions in, runs of their plaintext out.

    transport -> runs -> TLS -> runs -> framing

What follows does not know of it: plaintext has addresses in the store like all captured bytes. Directions that are not
TLS pass as they are, and so do connections of which the key log has no secrets: as encrypted bytes they are counted.

Invariants, each a property test:
  * any cutting of the streams into runs and batches gives the same plaintext;
  * what can't be opened is a gap, and its record is counted; nothing false comes out;
  * positions alone are held of connections that wait, for a hello of the peer or for keys that may still come, and at
    most `limits.held_runs` of them: past it those that have waited longest pass encrypted.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind
from dissector.core.columns import Column
from dissector.core.limits import Limits
from dissector.core.spool import SpoolFullError
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.tls.connection import TlsConnection
from dissector.tls.decryption import TlsDirection
from dissector.tls.direction_buffers import ADDRESS, KIND, PACKET, SIZE, START, TIME
from dissector.tls.exchange_estimate import LEAST_FRAGMENT, records_of_runs
from dissector.tls.key_log import KeyLog
from dissector.tls.late_start import LateStarts
from dissector.tls.plaintext import Plaintext
from dissector.tls.record_parts import APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, TlsRecord, record_parts
from dissector.tls.session import TlsSession

UNKNOWN, PASSED, TLS, ENCRYPTED = range(4)
"""What a direction is: not seen yet, not TLS, read as TLS, passed as it is because it has no keys."""
RUNS_OF_HANDSHAKE = 256
"""Runs of a connection without keys that are held until both ends have said what is in clear."""
_LOOK = 3
"""Bytes that a record begins with by which it is recognized: type and version."""


class TlsStage:
    """Decrypts the directions of a capture. A `Stage`."""

    def __init__(self, store: Store, keys: KeyLog, limits: Limits, *, most_waiting: int = 0) -> None:
        self._store = store
        self.keys = keys
        self._limits = limits
        self.most_waiting = most_waiting
        """Runs of a connection that are held while it waits for its secrets to be added to the key log; 0 where none
        will be."""
        self.plaintext = Plaintext(store, limits.spooled_bytes)
        self.connections: dict[int, TlsConnection] = {}
        """Those that are TLS, by number."""
        self._mode = Column(np.uint8, UNKNOWN)
        self._directions: dict[int, TlsDirection] = {}
        """Those that are read, or wait."""
        self._generation = keys.generation
        self._out: list[Int64] = []
        self.late = LateStarts(keys, limits.key_search)
        """The search for keys of connections whose hellos were not captured."""
        self.expects_keys = False
        """Whether secrets will be added to the key log."""
        self.failure = ""
        """Why plaintext could not be kept: it is gaps then."""
        self.bad_records = 0
        """Records that the keys of their connection did not open."""

    def feed(self, batch: RunBatch) -> list[RunBatch]:
        """Return the runs as they are, but plaintext in place of those that could be decrypted."""
        if not len(batch):
            return [batch]
        self._mode.grow((int(batch.direction.max()) | 1) + 1)
        firsts = np.flatnonzero(np.diff(batch.direction, prepend=-1))
        self._recognize(batch, firsts)
        mode = self._mode.values[batch.direction]
        is_tls = mode == TLS
        if (mode == ENCRYPTED).any():
            self._estimate(table_of(batch, mode == ENCRYPTED))
        if not is_tls.any():
            return [batch]
        touched: set[int] = set()
        for low, high in zip(firsts.tolist(), [*firsts[1:].tolist(), len(batch)], strict=True):
            if is_tls[low]:
                direction = int(batch.direction[low])
                self._directions[direction].pending.add(batch, low, high)
                touched.add(direction >> 1)
        for connection in sorted(touched):
            self._read(connection)
        self._release_oldest()
        return [self._joined(batch, ~is_tls)]

    def end(self, connections: Int64) -> list[RunBatch]:
        """Return what is held of these connections, and what secrets that came since decrypt of others."""
        if self._generation != self.keys.generation:
            self._generation = self.keys.generation
            for number in sorted({direction >> 1 for direction in self._directions}):
                self._read(number)
        ended = {direction >> 1 for direction in self._directions}.intersection(connections.tolist())
        return self._finish(ended)

    def flush(self) -> list[RunBatch]:
        """Return all that is held: the capture ends."""
        self.most_waiting = 0
        return self._finish({direction >> 1 for direction in self._directions})

    def session(self, connection: int) -> TlsSession | None:
        """What is known of the TLS of a connection, by number; None if it is not TLS."""
        found = self.connections.get(connection)
        return None if found is None else found.session

    def key_log_of(self, connections: Iterable[int]) -> bytes:
        """Return a key log with the secrets of some connections alone, by number."""
        chosen = [self.connections[number] for number in sorted(connections)]
        randoms = dict.fromkeys(hello.random for each in chosen for hello in each.client_hellos)
        randoms |= dict.fromkeys(each.client_random for each in chosen if each.client_random is not None)
        sessions = dict.fromkeys(hello.session_id for each in chosen for hello in each.server_hellos)
        encrypted = dict.fromkeys(prefix for each in chosen for prefix in each.key_exchanges.encrypted.values())
        return self.keys.selected(randoms, sessions, encrypted)

    def records_of(self, direction: int, start: int, size: int) -> list[TlsRecord]:
        """Return the records that a stretch of a decrypted stream was in: none for another stream, and without those
        of before a checkpoint."""
        connection = self.connections.get(direction >> 1)
        if connection is None:
            return []
        table = self.plaintext.records.overlapping(direction, start, size)
        return [
            TlsRecord(data, tuple(record_parts(connection.agreements(), plain_size, record_size)), plain - start,
                      plain_size, packets)
            for _, plain, plain_size, record, record_size in table.T.tolist()
            for data, packets in self._sent(direction, record, record_size)
        ]  # fmt: skip

    def _sent(self, direction: int, start: int, size: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Yield the bytes of a stretch of TCP and their packets; nothing where some are not there any more."""
        runs = self.plaintext.ciphertext.overlapping(direction, start, size)
        pieces = []
        for _, begin, run_size, address, _ in runs.T.tolist():
            low, high = max(begin, start), min(begin + run_size, start + size)
            pieces.append(bytes(self._store.read_intact(address + low - begin, high - low)))
        if (data := b"".join(pieces)) and len(data) == size:
            yield data, tuple(dict.fromkeys(runs[4].tolist()))

    def is_decrypted(self, connection: int) -> bool:
        """Whether records of a connection were decrypted."""
        found = self.connections.get(connection)
        return found is not None and found.is_opened

    def close(self) -> None:
        """Close the temporary file with the plaintext."""
        self.plaintext.close()

    @property
    def held_bytes(self) -> int:
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        held = [each.pending.held_regions() for each in self._directions.values()]
        return np.concatenate([np.zeros((2, 0), np.int64), *held], axis=1)

    def oldest_pending(self, after_ns: int = -1) -> Position:
        tables = [each.pending.table() for each in self._directions.values()]
        firsts = [table[[PACKET, TIME], :1] for table in tables]
        return oldest_position(np.concatenate([np.zeros((2, 0), np.int64), *firsts], axis=1), after_ns)

    def _recognize(self, runs: RunBatch, firsts: Int64) -> None:
        """Find out which new directions begin with a TLS record."""
        new = firsts[self._mode.values[runs.direction[firsts]] == UNKNOWN]
        if not len(new):
            return
        size = np.where(runs.kind[new] == RunKind.DATA, runs.size[new], 0)
        heads = np.zeros((len(new), _LOOK), np.uint8)
        heads[size > 0] = self._store.gather(runs.address[new[size > 0]], _LOOK)
        is_record: Bool = (heads[:, 0] >= CHANGE_CIPHER_SPEC) & (heads[:, 0] <= APPLICATION_DATA) & (size > 0)
        is_record &= ((heads[:, 1] == 3) | (size < 2)) & ((heads[:, 2] <= 4) | (size < _LOOK))
        may_be_late = bool(self.keys.traffic_secrets()) or self.expects_keys
        for row in np.flatnonzero(is_record | may_be_late).tolist():
            is_aligned = bool(is_record[row]) or not size[row]
            is_late = may_be_late and not (is_record[row] and heads[row, 0] == HANDSHAKE)
            self._begin(int(runs.direction[new[row]]), is_aligned=is_aligned, is_late=is_late)
        rest = runs.direction[new]
        self._mode.values[rest[self._mode.values[rest] == UNKNOWN]] = PASSED

    def _begin(self, direction: int, *, is_aligned: bool, is_late: bool) -> None:
        """Read a new direction, if it may be TLS. It begins with a record or a gap, else it is not aligned."""
        peer = self._mode.values[direction ^ 1]
        connection = self.connections.get(direction >> 1)
        if not is_aligned and (peer == PASSED or (connection is not None and not connection.is_late)):
            return
        if connection is None:
            connection = self.connections[direction >> 1] = TlsConnection(self.keys)
            connection.is_late = is_late
        self._directions[direction] = TlsDirection(connection, direction, is_aligned=is_aligned)
        self._mode.values[direction] = TLS

    def _read(self, number: int, *, ends: bool = False) -> None:
        """Read both directions of a connection on, as long as one can go on with what the other said. With `ends`, no
        secrets of it are expected any more."""
        directions, connection = self._of(number), self.connections[number]
        held = sum(len(each.pending) for each in directions)
        connection.may_get_secrets = not ends and held <= self.most_waiting
        while any(each.read(self._store) for each in directions) or self._place(number, directions):
            pass
        if connection.is_opened:
            for each in directions:
                self._take(each)
        elif any(each.is_garbled for each in directions) or self._has_no_keys(connection, directions):
            self._pass(directions)

    def _place(self, number: int, directions: list[TlsDirection]) -> bool:
        """Find the keys of a connection whose hellos were not captured; return whether a direction can go on."""
        connection = self.connections[number]
        if not connection.is_late or not self.keys.traffic_secrets():
            return False
        is_any = False
        for each in directions:
            if each.is_placed:
                continue
            records, side = each.first_records(self._store), connection.side(each.direction)
            found = self.late.find(records, connection, side, self.connections.values())
            if found is None:
                is_any |= connection.is_found and each.give_up()
            else:
                connection.take_place(each.direction, found.side, found.client_random, found.suite)
                each.place(found.epoch, found.sequence)
                is_any = True
        return is_any

    def _has_no_keys(self, connection: TlsConnection, directions: list[TlsDirection]) -> bool:
        """Whether the keys of a connection will not be known, and what is in clear has been read."""
        if connection.has_keys:
            return False
        held = sum(len(each.pending) for each in directions)
        if held <= self.most_waiting:
            return False
        if held <= RUNS_OF_HANDSHAKE and not (len(directions) == 2 and all(each.is_stopped for each in directions)):
            return False
        return connection.is_agreed or not connection.client_hellos or not self.keys.has_others

    def _of(self, number: int) -> list[TlsDirection]:
        both = (self._directions.get(2 * number + side) for side in (0, 1))
        return [each for each in both if each is not None]

    def _finish(self, ended: Iterable[int]) -> list[RunBatch]:
        for number in sorted(ended):
            self._read(number, ends=True)
            directions = self._of(number)
            if self.connections[number].is_opened:
                for each in directions:
                    each.finish()
                    self._take(each)
                    self.bad_records += each.bad_records
                    del self._directions[each.direction]
            else:
                self._pass(directions)
        return [self._joined(None, None)] if self._out else []

    def _pass(self, directions: list[TlsDirection]) -> None:
        """Pass what is held of directions as it is, and all that follows."""
        if not any(each.is_aligned for each in directions):  # no record was seen
            for each in directions:
                self.connections.pop(each.direction >> 1, None)
        for each in directions:
            table = each.pending.table()
            rows = np.empty((7, table.shape[1]), np.int64)
            rows[0] = each.direction
            rows[1:] = table[[KIND, START, ADDRESS, SIZE, TIME, PACKET]]
            self._out.append(rows)
            self._mode.values[each.direction] = ENCRYPTED if each.direction >> 1 in self.connections else PASSED
            del self._directions[each.direction]
        if directions and directions[0].direction >> 1 in self.connections:
            self._estimate(np.concatenate(self._out[-len(directions) :], axis=1))

    def _estimate(self, table: Int64) -> None:
        """Count the exchanges in runs that stay encrypted."""
        table = table[:, table[1] == RunKind.DATA]
        table = table[:, np.lexsort((table[6], table[0] >> 1))]
        numbers, firsts = np.unique(table[0] >> 1, return_index=True)
        hidden = [number for number in numbers.tolist() if self.connections[number].is_tls_1_3]
        least = np.where(np.isin(table[0] >> 1, hidden), LEAST_FRAGMENT, 0)
        records = records_of_runs(self._store, table[3], table[4], least)
        for number, low, high in zip(numbers.tolist(), firsts, [*firsts[1:], table.shape[1]], strict=True):
            self.connections[number].estimate(table[0, low:high], records[low:high])

    def _take(self, direction: TlsDirection) -> None:
        """Take the plaintext of a direction into the store."""
        runs = direction.take_runs()
        self.plaintext.ciphertext.extend(np.vstack([np.full(runs.shape[1], direction.direction), runs]))
        if not len(direction.pieces):
            return
        pieces = direction.take()
        texts = [text for text in pieces.texts if text is not None]
        is_gap = np.array([text is None for text in pieces.texts], np.bool_)
        try:
            first = self.plaintext.append(texts)
        except SpoolFullError as error:
            first, is_gap[:], self.failure = NOWHERE, True, str(error)
        size, record, end = (np.array(each, np.int64) for each in (pieces.sizes, pieces.records, pieces.ends))
        start = pieces.plain_end - int(size.sum()) + np.cumsum(size) - size
        captured = np.where(is_gap, 0, size)
        address = np.where(is_gap, NOWHERE, first + np.cumsum(captured) - captured)
        kind = np.where(is_gap, int(RunKind.LOST), int(RunKind.DATA))
        of = np.full(len(size), direction.direction)
        table = np.stack([of, kind, start, address, size, *pieces.seen])
        self._out.append(table[:, size > 0])
        rows = np.flatnonzero(~is_gap & (size > 0))
        self.plaintext.add_records(np.stack([of, start, size, record, end - record])[:, rows])

    def _joined(self, batch: RunBatch | None, is_passed: Bool | None) -> RunBatch:
        """Return the rows that pass, and what was read, each direction's in stream order."""
        tables, self._out = self._out, []
        if batch is not None and is_passed is not None and is_passed.any():
            tables.append(table_of(batch, is_passed))
        table = np.concatenate(tables, axis=1) if tables else np.zeros((7, 0), np.int64)
        direction, kind, start, address, size, time_ns, packet = table[:, np.lexsort((table[2], table[0]))]
        return RunBatch(direction, kind.astype(np.uint8), start, address, size, time_ns, packet)

    def _release_oldest(self) -> None:
        """Pass the connections that have waited longest, where too much is held."""
        waiting = {each >> 1 for each in self._directions if not self.connections[each >> 1].is_opened}
        held = {number: sum(len(each.pending) for each in self._of(number)) for number in waiting}
        too_many = sum(held.values()) - self._limits.held_runs
        if too_many <= 0:
            return
        for number in sorted(waiting):
            self._read(number, ends=True)
            if not self.connections[number].is_opened:
                self._pass(self._of(number))
            too_many -= held[number]
            if too_many <= -self._limits.held_runs // 2:
                return


def table_of(batch: RunBatch, rows: Bool) -> Int64:
    """Some rows of a batch as a table, `(7, n)`."""
    columns = (batch.direction, batch.kind, batch.start, batch.address, batch.size, batch.time_ns, batch.packet)
    return np.stack([np.asarray(column[rows], np.int64) for column in columns])
