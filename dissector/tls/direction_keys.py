"""The keys with which the records of one direction are read, one epoch after the other.

Invariant: no checkpoint has a key. A direction that is restored finds its cipher again, once the secrets are there.
"""

from typing import TYPE_CHECKING, Any

from dissector.tls.connection import Epoch, TlsConnection

if TYPE_CHECKING:
    from dissector.tls.record_ciphers import RecordCipher


class DirectionKeys:
    """The epoch that a direction is in, its cipher, and the sequence number of the next record."""

    def __init__(self, connection: TlsConnection, direction: int) -> None:
        self._connection = connection
        self._direction = direction
        self.epoch: Epoch | None = None
        """None while nothing is encrypted."""
        self.cipher: RecordCipher | None = None
        """None without one that can be decrypted."""
        self.sequence = 0
        self._changes = 0
        """ChangeCipherSpec messages of a version before 1.3."""
        self._kept: tuple[int, bytes | None] | None = None
        """How a restored direction finds its cipher: which one of its epoch it is, and the block it is chained to."""

    def use(self, epoch: Epoch, cipher: "RecordCipher | None", sequence: int = 0) -> None:
        """Go on with the cipher of an epoch."""
        self.epoch, self.cipher, self.sequence = epoch, cipher, sequence

    def later(self) -> "list[tuple[Epoch, RecordCipher]]":
        """The ciphers of TLS 1.3 that may follow, the next epoch's first: an epoch has several where its suite is not
        known."""
        if self.epoch is not None and self.epoch.phase is None:
            return []
        return [
            (each, cipher)
            for each in self._connection.epochs_after(self.epoch)
            for cipher in self._connection.ciphers(self._direction, each)
        ]

    def update(self) -> None:
        """Go on with the next traffic secret: behind a KeyUpdate message."""
        if self.epoch is not None and self.epoch.phase is not None:
            self.use(*next(iter(self.later()), (self.epoch, None)))

    def change(self) -> bool:
        """Use the keys that go with a ChangeCipherSpec before TLS 1.3; return whether its hellos and the keys are
        there."""
        connection = self._connection
        if not connection.is_ready(self._changes) or not connection.can_be_opened:
            return False
        epoch = Epoch(None, self._changes)
        self._changes += 1
        self.use(epoch, next(iter(connection.ciphers(self._direction, epoch)), None))
        return True

    def restore(self) -> bool:
        """Find the cipher again that a checkpoint does not have; return whether there is nothing to wait for."""
        if self._kept is None or self.epoch is None:
            return True
        ciphers = self._connection.ciphers(self._direction, self.epoch)
        if not ciphers:
            return False
        number, chained = self._kept
        self.cipher, self._kept = ciphers[min(number, len(ciphers) - 1)], None
        self.cipher.chained = chained
        return True

    def __getstate__(self) -> dict[str, Any]:
        if self.cipher is None or self.epoch is None:
            return self.__dict__
        ciphers = self._connection.ciphers(self._direction, self.epoch)
        number = next((n for n, each in enumerate(ciphers) if each.suite == self.cipher.suite), 0)
        return self.__dict__ | {"cipher": None, "_kept": (number, self.cipher.chained)}
