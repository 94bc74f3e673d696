"""Runs one client through the proxy, on the island."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dissector.capture.live import Recording
from dissector.proxy_server import BrokerAddress, ProxySettings
from tools.lab.proxied.island import PROXY_HOST
from tools.lab.proxied.ways import Way
from tools.lab.survey.record import output_of

CLIENT_SECONDS = 120


class Ran(NamedTuple):
    """What came of a client."""

    failure: str
    """Its output if it failed; empty if not. Under faults it is there in any case."""
    said: list[str]
    """What the proxy said."""
    path: Path
    """The recording."""
    fired: int
    """How often rules fired."""


@contextmanager
def proxied(
    command: Callable[[str], Sequence[str]],
    ports: tuple[int, ...],
    way: Way,
    event: Callable[[], None] | None = None,
    seconds: float = CLIENT_SECONDS,
    faults: tuple[tuple[str, str], ...] = (),
) -> Iterator[Ran]:
    """Run what `command` returns for the proxy's address; the recording is there while the context is open. `event`
    happens meanwhile; the client's standard input ends when it returns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proxied.pcapng"
        settings = ProxySettings(
            tuple(BrokerAddress("127.0.0.1", port) for port in ports),
            host=PROXY_HOST, tls=way.upstream, listen_tls=way.listen_tls, path=str(path), faults=faults,
        )  # fmt: skip
        with Recording(settings) as recording:
            code, said_by_client = output_of(command(recording.listening[0][0]), event, seconds, way.environment)
            time.sleep(1.2)
            said = [*recording.messages()]
            recording.stop()
            recording.join()
            said += recording.messages()
            fired = sum(each.fired for each in recording.faults)
            yield Ran(said_by_client if code or faults else "", said, path, fired)
