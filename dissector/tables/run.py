"""A run of ingest: its epoch, and its folder for what it writes for itself, `_runs/EPOCH-PROCESS-HOST`."""

import os
import socket
import time
from typing import Final, NamedTuple, Self

RUNS: Final = "_runs"
"""Folder of the runs' folders, beside the tables."""
ABANDONED_SECONDS: Final = 86_400.0
"""Age of a run that nobody works on any more, unless it is known to be at work."""


class Run(NamedTuple):
    """One run."""

    epoch: int
    """When it began, microseconds since 1970; two runs of the same microsecond would be one."""
    host: str
    process: int

    @classmethod
    def new(cls) -> Self:
        """Return a run of this process."""
        return cls(time.time_ns() // 1_000, socket.gethostname(), os.getpid())

    @property
    def folder(self) -> str:
        """Its folder, relative to the storage."""
        return f"{RUNS}/{self.epoch}-{self.process}-{self.host}"

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the run of a folder; None if it is no run's."""
        epoch, _, rest = name.partition("-")
        process, _, host = rest.partition("-")
        return cls(int(epoch), host, int(process)) if epoch.isdecimal() and process.isdecimal() else None

    @property
    def is_abandoned(self) -> bool:
        """Whether its process is gone."""
        if self.host == socket.gethostname():
            try:
                os.kill(self.process, 0)
            except ProcessLookupError:
                return True
            except (PermissionError, OverflowError):
                return False
            return False
        return time.time() - self.epoch / 1e6 > ABANDONED_SECONDS
