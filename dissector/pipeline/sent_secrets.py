"""TLS secrets on their way to Spark's tasks: as a broadcast, which is in no plan, setting, environment or event log.

All secrets are sent, as a connection whose ClientHello was not captured may have any of them. Spark keeps a broadcast
in folders that only its user can read, and encrypts it there if `spark.io.encryption.enabled` is set.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from dissector.core.finding import Finding, Severity

if TYPE_CHECKING:
    from pyspark import Broadcast


def nothing() -> bytes:
    """Return no secrets: nothing is sent then."""
    return b""


class SentSecrets:
    """The secrets of one run: a key log."""

    def __init__(self, spark: SparkSession, secrets: bytes) -> None:
        self.problems: list[Finding] = []
        self.value: Callable[[], bytes] = nothing
        """Gives them to a task."""
        self._broadcast: Broadcast[bytes] | None = None
        if secrets and is_remote():
            words = "secrets of TLS are not sent to a Spark Connect server, whose plans would have them: use --master"
            self.problems.append(Finding("secrets-omitted", Severity.WARNING, words))
        elif secrets:
            self._broadcast = spark.sparkContext.broadcast(secrets)
            self.value = _Received(self._broadcast)

    def forget(self) -> None:
        """Remove them from the machines that have got them."""
        if self._broadcast is not None:
            self._broadcast.destroy()
            self._broadcast, self.value = None, nothing


class _Received:
    """Secrets in a task. Its pickle has the number of the broadcast alone."""

    def __init__(self, broadcast: "Broadcast[bytes]") -> None:
        self._broadcast = broadcast

    def __call__(self) -> bytes:
        return self._broadcast.value
