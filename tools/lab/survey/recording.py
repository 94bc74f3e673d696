"""A recording of the survey, read: its exchanges, their errors, and what the comparison says of its client."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from dissector.analysis.conformance import CheckResult, check
from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.behavior import side_behavior
from dissector.analysis.diff.matching_keys import first_error
from dissector.analysis.diff.side_profile import SideProfile
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.schema.errors import error_name


class SeenExchange(NamedTuple):
    """One exchange: what facts are made from."""

    number: int
    """From 1, as `kdissect show` prints it."""
    connection: int
    api: str
    version: int
    time_ns: int
    end_ns: int
    """The time of the response; 0 for none."""
    is_answered: bool
    """Whether it has a response, or expects none."""
    error: str
    """The first error of the response; empty for none."""
    exchange: Exchange


class Recording:
    """A capture that has been read to its end; rules see its secrets, pages show values of fields without any."""

    def __init__(self, path: Path, capture: Capture) -> None:
        self.path = path
        self.capture = capture
        self.exchanges = [_seen(each) for each in capture.exchanges() if each.request is not None]

    @cached_property
    def profile(self) -> SideProfile:
        """What the comparison sees of it."""
        return SideProfile(DiffSide(self.capture, self.path.stem), {}, {})

    @cached_property
    def behavior(self) -> dict[str, str]:
        """The column that a matrix of `kdissect diff` has for it."""
        return side_behavior(self.profile)

    def of(self, *apis: str) -> list[SeenExchange]:
        """The exchanges of these APIs."""
        return [each for each in self.exchanges if each.api in apis]

    def check(self) -> CheckResult:
        """The rules of the protocol that it keeps and breaks."""
        return check([(self.path.name, self.capture)])


def _seen(exchange: Exchange) -> SeenExchange:
    row, response = exchange.fields, exchange.response
    code = first_error(response) if response is not None else 0
    return SeenExchange(
        row.number, row.connection, row.api, row.version or 0, row.time_ns, response.time_ns if response else 0,
        response is not None or _expects_none(exchange), error_name(code) if code else "", exchange,
    )  # fmt: skip


def _expects_none(exchange: Exchange) -> bool:
    """Whether it is a Produce request with acks=0."""
    return exchange.request is not None and exchange.request.body.get("acks") == 0


@contextmanager
def read_recording(path: Path) -> Iterator[Recording]:
    """Open and read one."""
    with Capture([str(path)], show_secrets=True) as capture:
        for _ in capture.read():
            pass
        yield Recording(path, capture)
