"""A key log file, read on as it grows."""

import os
from pathlib import Path
from typing import BinaryIO

from dissector.tls.errors import KeyLogError
from dissector.tls.key_log import KeyLog, KeyLogText

PIECE = 1 << 16


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
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise KeyLogError(f"{path}: {(error.strerror or str(error)).lower()}") from None

    def read(self) -> None:
        """Add what came since the last call."""
        try:
            with Path(self.path).open("rb") as file:
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
