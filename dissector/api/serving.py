"""A server that answers clients from a recording, as programs and tests use it."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import Self

from dissector.capture.errors import CaptureError
from dissector.capture_session import Capture as Session
from dissector.core.addresses import listen_address
from dissector.core.text import endpoint_name
from dissector.recorded_server import (
    Answered,
    RecordedExchanges,
    RecordedServer,
    ServeSettings,
    recording_of,
    recording_of_frames,
)
from dissector.recorded_server.server import listen_words

Frames = Iterable[tuple[bytes, bytes | None]]


class Served:
    """A server in a separate thread that runs until its context ends; `dissector.serve` returns it.

    >>> frames = [(bytes.fromhex("0000000d 0012 0000 00000007 0003 646576"),
    ...            bytes.fromhex("0000000a 00000007 0000 00000000"))]
    >>> with dissector.serve(frames) as broker:
    ...     broker.bootstrap.partition(":")[0]
    '127.0.0.1'
    """

    def __init__(self, recording: RecordedExchanges, settings: ServeSettings) -> None:
        self.requests: list[bytes] = []
        """The frames that clients sent, size prefixes included."""
        self.unanswered: list[str] = []
        """What was not recorded, each as a line."""
        self._server = RecordedServer(recording, settings, self._on_answer)
        self._loop = asyncio.new_event_loop()
        try:
            self.address: tuple[str, int] = self._loop.run_until_complete(self._server.start())
        except OSError as error:
            self._loop.close()
            raise CaptureError(listen_words(error, settings)) from None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def bootstrap(self) -> str:
        """The server's address, for the clients' ``bootstrap.servers``."""
        return endpoint_name(*self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server; its clients see a closed connection."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _on_answer(self, answered: Answered) -> None:
        self.requests.append(answered.request)
        if answered.answer.trouble:
            self.unanswered.append(f"{answered.answer.name}: {answered.answer.trouble}")


def serve(
    source: str | PathLike[str] | Sequence[str | PathLike[str]] | Frames,
    *,
    listen: str | int = 0,
    advertise: str = "",
    speed: float | None = None,
) -> Served:
    """Answer clients from captures, or from frames of requests and their responses, including size prefixes. The
    parameters are like the options of ``kdissect serve``: `listen` is ``[HOST:]PORT``, by default any loopback port,
    and long polls are answered at once unless a `speed` is given. Raises `CaptureError` for a capture that can't be
    read or a port that is in use, and `ValueError` for an invalid address.

    >>> with dissector.serve("pcaps/java.pcapng") as broker:
    ...     broker.unanswered
    []
    """
    host, port = listen_address(str(listen))
    return Served(_recording(source), ServeSettings(host, port or 0, advertise, speed))


def _recording(source: str | PathLike[str] | Sequence[str | PathLike[str]] | Frames) -> RecordedExchanges:
    parts: list[object] = list(source) if isinstance(source, Iterable) and not isinstance(source, str) else [source]
    if not all(isinstance(each, str | PathLike | tuple) for each in parts):
        raise TypeError(f"serve({source!r}): give one path, several paths, or pairs of frames")
    paths = [fspath(each) for each in parts if isinstance(each, str | PathLike)]
    if not paths:
        return recording_of_frames([each for each in parts if isinstance(each, tuple)])
    with Session(paths, show_secrets=True) as capture:
        return recording_of(capture)
