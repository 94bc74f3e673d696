"""Where Spark is to run, as the options of all commands say it that take tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dissector.cli.errors import UsageError


@dataclass(frozen=True)
class Cluster:
    """A master, or a Spark Connect server; else all cores of this machine. Raises `UsageError` for a bad setting."""

    master: str | None = None
    remote: str | None = None
    conf: Sequence[str] = ()
    verbose: bool = False

    @property
    def is_chosen(self) -> bool:
        """Whether there was any of the options."""
        return self != Cluster()

    def __post_init__(self) -> None:
        for each in self.conf:
            if not each.partition("=")[0] or "=" not in each:
                raise UsageError(f"--conf {each}: not NAME=VALUE")

    @property
    def settings(self) -> dict[str, str]:
        """Settings by name."""
        return dict(each.split("=", 1) for each in self.conf)


THIS_MACHINE: Final = Cluster()
