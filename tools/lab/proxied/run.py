"""Runs one client through the proxy, on the island."""

import subprocess
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
            failure = _run(command(recording.listening[0][0]), event, seconds)
            time.sleep(1.2)
            said = [*recording.messages()]
            recording.stop()
            recording.join()
            said += recording.messages()
            yield Ran(failure, said, path)


def _run(command: Sequence[str], event: Callable[[], None] | None, seconds: float) -> str:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
        try:
            if event is not None:
                event()
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"did not end within {seconds:.0f} s"
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    return said or "no word" if process.returncode else ""
