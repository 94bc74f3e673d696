"""Runs one client through the proxy, on the island."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from dissector.capture.live import Recording
from dissector.proxy_server import BrokerAddress, ProxySettings
from dissector.proxy_server.settings import ListenTls, UpstreamTls
from tools.lab.proxied.island import PROXY_HOST
from tools.lab.survey.record import run_client

CLIENT_SECONDS = 120


class Ran(NamedTuple):
    """What came of a client."""

    failure: str
    """Its error output if it failed; empty if not."""
    said: list[str]
    """What the proxy said."""
    path: Path
    """The recording."""


class Way(NamedTuple):
    """How the proxy speaks to both sides."""

    tls: UpstreamTls | None = None
    listen_tls: ListenTls | None = None


PLAIN: Final = Way()


@contextmanager
def proxied(
    command: Callable[[str], Sequence[str]],
    ports: tuple[int, ...],
    way: Way = PLAIN,
    event: Callable[[], None] | None = None,
    seconds: float = CLIENT_SECONDS,
) -> Iterator[Ran]:
    """Run what `command` returns for the proxy's address; the recording is there while the context is open. `event`
    happens meanwhile; the client's standard input ends when it returns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proxied.pcapng"
        settings = ProxySettings(
            tuple(BrokerAddress("127.0.0.1", port) for port in ports),
            host=PROXY_HOST, tls=way.tls, listen_tls=way.listen_tls, path=str(path),
        )  # fmt: skip
        with Recording(settings) as recording:
            failure = run_client(command(recording.listening[0][0]), event, seconds)
            time.sleep(1.2)
            said = [*recording.messages()]
            recording.stop()
            recording.join()
            said += recording.messages()
            yield Ran(failure, said, path)
