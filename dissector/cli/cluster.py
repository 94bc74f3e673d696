"""Where Spark is to run: the options of all commands that take tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

Master = Annotated[str | None, typer.Option(metavar="URL", help="A Spark master; else all cores of this machine.")]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server: sc://HOST:PORT.")]
Conf = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A setting of Spark; may be repeated.")]
Verbose = Annotated[bool, typer.Option("-v", help="Let Spark speak.")]


@dataclass(frozen=True)
class Cluster:
    """Where Spark is to run, as the options say it. Raises `CaptureError` for settings that are none."""

    master: str | None = None
    remote: str | None = None
    conf: Sequence[str] = ()
    verbose: bool = False

    @property
    def is_chosen(self) -> bool:
        """Whether there was any of the options."""
        return self != Cluster()

    def __post_init__(self) -> None:
        from dissector.capture import CaptureError  # `--help` does without it

        for each in self.conf:
            if not each.partition("=")[0] or "=" not in each:
                raise CaptureError(f"--conf {each}: not NAME=VALUE")

    @property
    def settings(self) -> dict[str, str]:
        """Settings by name."""
        return dict(each.split("=", 1) for each in self.conf)


THIS_MACHINE: Final = Cluster()
