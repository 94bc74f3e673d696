"""The secrets of TLS connections, as programs log them: RFC 9850, and the forms that Java's agents and Wireshark know.

    CLIENT_TRAFFIC_SECRET_0 <client random> <secret>
    CLIENT_RANDOM <client random> <master secret>
    RSA Session-ID:<session id> Master-Key:<master secret>
    RSA <first 8 bytes of the encrypted premaster secret> <premaster secret>

Invariants: however a log is cut, it gives the same secrets once it is complete; labels that decrypt no record are
passed over, other lines counted; what is kept is bounded, and no text of this object shows a secret.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, BinaryIO, Final

from dissector.core.files import open_kept
from dissector.core.text import os_reason
from dissector.tls.key_derivation import MASTER_SECRET_SIZE, PREFIX

MOST_SECRETS: Final = 1 << 20
LONGEST_LINE: Final = 1 << 10
_LINE: Final = re.compile(rb"([A-Z0-9_]+) ((?:[0-9a-fA-F]{2})+) ((?:[0-9a-fA-F]{2})+)$")
_SESSION: Final = re.compile(rb"RSA Session-ID:((?:[0-9a-fA-F]{2})*) Master-Key:((?:[0-9a-fA-F]{2})+)$")
_TRAFFIC: Final = re.compile(r"(?:CLIENT|SERVER)_(?:HANDSHAKE_TRAFFIC_SECRET|TRAFFIC_SECRET_\d{1,4})$")
_USED: Final = frozenset(("CLIENT_RANDOM", "CLIENT_EARLY_TRAFFIC_SECRET", "PMS_CLIENT_RANDOM"))
_IGNORED: Final = re.compile(r"EXPORTER_SECRET|EARLY_EXPORTER_(?:MASTER_)?SECRET|ECH_(?:SECRET|CONFIG)")
MASTER, PREMASTER, RSA = "CLIENT_RANDOM", "PMS_CLIENT_RANDOM", "RSA"
RANDOM_SIZE: Final = 32
PIECE: Final = 1 << 16
"""Bytes of a file that are read at once."""


class KeyLogError(Exception):
    """A key log that can't be read. Its text is one plain line."""


class KeyLog:
    """Secrets by connection. `generation` grows whenever some are added."""

    def __init__(self) -> None:
        self.generation = 0
        self.bad_lines = 0
        """Lines that are none of a key log."""
        self._secrets: dict[bytes, dict[str, bytes]] = {}
        self._traffic: list[tuple[bytes, str]] = []
        """Client random and label of each secret of TLS 1.3 traffic, in the order of the log."""
        self._sessions: dict[bytes, bytes] = {}
        self._premasters: dict[bytes, bytes] = {}
        """By the first bytes of their encrypted form."""
        self._count = 0

    def add(self, data: bytes) -> None:
        """Add a whole log."""
        self.add_lines(data.split(b"\n"))

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Add lines of a log."""
        before = self._count
        for line in lines:
            self._add_line(line.strip())
        self.generation += self._count > before

    def _add_line(self, line: bytes) -> None:
        if not line or line.startswith(b"#"):
            return
        if self._count >= MOST_SECRETS or len(line) > LONGEST_LINE:
            self.bad_lines += 1
        elif match := _LINE.match(line):
            self._add_secret(match)
        elif (match := _SESSION.match(line)) and _has_size(MASTER, match[2]):
            self._sessions[bytes.fromhex(match[1].decode())] = bytes.fromhex(match[2].decode())
            self._count += 1
        else:
            self.bad_lines += 1

    def _add_secret(self, match: re.Match[bytes]) -> None:
        label, random, secret = match[1].decode(), *(bytes.fromhex(each.decode()) for each in (match[2], match[3]))
        if label in _USED or _TRAFFIC.match(label):
            if len(random) == RANDOM_SIZE and _has_size(label, match[3]):
                known = self._secrets.setdefault(random, {})
                if label not in known and _TRAFFIC.match(label):
                    self._traffic.append((random, label))
                known[label] = secret
                self._count += 1
            else:
                self.bad_lines += 1
        elif label == RSA and len(random) == PREFIX and _has_size(label, match[3]):
            self._premasters[random] = secret
            self._count += 1
        elif not _IGNORED.match(label):
            self.bad_lines += 1

    def secrets(self, client_random: bytes) -> Mapping[str, bytes]:
        """Return the secrets of the connections with a client random, by label."""
        return self._secrets.get(client_random, {})

    def master_secret(self, client_random: bytes, session_id: bytes) -> bytes | None:
        """Return the master secret of a connection before TLS 1.3, None if it is not in the log."""
        known = self.secrets(client_random).get(MASTER)
        return self._sessions.get(session_id) if known is None and session_id else known

    def premaster(self, client_random: bytes, encrypted: bytes) -> bytes | None:
        """Return a premaster secret, by the client's random or the first bytes that it has encrypted; None if it is not
        in the log."""
        return self.secrets(client_random).get(PREMASTER) or self._premasters.get(encrypted)

    def traffic_secrets(self, first: int = 0) -> list[tuple[bytes, str]]:
        """Client random and label of the secrets of TLS 1.3 handshakes and traffic, from a number on, as they came."""
        return self._traffic[first:]

    @property
    def has_others(self) -> bool:
        """Whether there are secrets that are not found by a client's random."""
        return bool(self._sessions or self._premasters)

    @property
    def client_randoms(self) -> Set[bytes]:
        """The client randoms of connections with secrets."""
        return self._secrets.keys()

    def __len__(self) -> int:
        """Secrets."""
        return self._count

    def selected(
        self, client_randoms: Iterable[bytes], session_ids: Iterable[bytes] = (), encrypted: Iterable[bytes] = ()
    ) -> bytes:
        """Return a key log with the secrets of some connections alone, by all that they are found by."""
        return b"".join(line.encode() + b"\n" for line in self._lines(client_randoms, session_ids, encrypted))

    @property
    def text(self) -> bytes:
        """A key log with all secrets."""
        return self.selected(self._secrets, self._sessions, self._premasters)

    def _lines(
        self, client_randoms: Iterable[bytes], session_ids: Iterable[bytes], encrypted: Iterable[bytes]
    ) -> Iterator[str]:
        for random in client_randoms:
            for label, secret in self.secrets(random).items():
                yield f"{label} {random.hex()} {secret.hex()}"
        for session in session_ids:
            if session in self._sessions:
                yield f"RSA Session-ID:{session.hex()} Master-Key:{self._sessions[session].hex()}"
        for prefix in encrypted:
            if prefix in self._premasters:
                yield f"RSA {prefix.hex()} {self._premasters[prefix].hex()}"

    def __repr__(self) -> str:
        return f"KeyLog({len(self)} secrets)"

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyLog, ()  # no checkpoint has secrets: they are read again


def _has_size(label: str, digits: bytes) -> bool:
    """Whether a secret has all of its hex digits: a line that is cut may look whole."""
    if label in (MASTER, RSA):
        return len(digits) == 2 * MASTER_SECRET_SIZE
    return "TRAFFIC_SECRET" not in label or len(digits) in (64, 96)


class KeyLogText:
    """The text of one key log, as its bytes come. Its secrets go to those of all logs."""

    def __init__(self, keys: KeyLog) -> None:
        self._keys = keys
        self._rest = b""
        self.secrets = 0
        """How many it has."""
        self.bad_lines = 0
        """Lines that are none of a key log."""

    def add(self, data: bytes) -> None:
        """Add the next bytes. A last line without its end waits for more."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[: LONGEST_LINE + 1]
        secrets, bad_lines = len(self._keys), self._keys.bad_lines
        self._keys.add_lines(lines)
        self.secrets += len(self._keys) - secrets
        self.bad_lines += self._keys.bad_lines - bad_lines

    @property
    def is_cut(self) -> bool:
        """Whether the last line is incomplete: more may come, or it is no secret."""
        line = self._rest.strip()
        if match := _LINE.match(line):
            return not _has_size(match[1].decode(), match[3])
        match = _SESSION.match(line)
        return bool(line) and not (match and _has_size(MASTER, match[2]))

    def finish(self) -> None:
        """Take the last line, if it is whole but for its end."""
        if self._rest and not self.is_cut:
            self.add(b"\n")


class KeyLogFile:
    """Reads a file into a key log, each time from where it stopped. If another file has its name, or it became shorter,
    it is read from its beginning: programs replace their logs.

    Raises `KeyLogError` if it can't be opened."""

    def __init__(self, path: str, keys: KeyLog, most: int) -> None:
        self.path = path
        self._keys = keys
        self.text = KeyLogText(keys)
        """What was read of it."""
        self._most = most
        self._read = 0
        self._identity = (0, 0)
        try:
            with open_kept(path):
                pass
        except OSError as error:
            raise KeyLogError(f"{path}: {os_reason(error)}") from None

    def read(self) -> None:
        """Add what came since the last call."""
        try:
            with open_kept(self.path) as file:
                self._read_on(file)
        except OSError:  # removed for now: what was read stays
            return

    def _read_on(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        identity = status.st_dev, status.st_ino
        if identity != self._identity or status.st_size < self._read:
            self._identity, self._read, self.text = identity, 0, KeyLogText(self._keys)
        file.seek(self._read)
        while self._read < self._most and (data := file.read(min(PIECE, self._most - self._read))):
            self._read += len(data)
            self.text.add(data)
