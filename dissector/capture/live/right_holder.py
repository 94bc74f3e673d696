"""A process that keeps the rights of a `kdissect live` that gives up its own: it starts the user's capture again, and
looks up processes. It never sees a packet.

The analyzing process, which reads what strangers send, asks it over a socket. A request is a letter, the size of what
follows in four bytes, and that:

  * ``c``, with nothing but a socket for the new capture process: capture again, to the next file. What is captured, and
    where it is written, was settled before the rights were given up;
  * ``p`` and pairs of ends, a line each, as ``127.0.0.1:51234 127.0.0.1:9092``: they are compared with what the system
    lists, and nothing else is done with them.

An answer has a size and its bytes. Any other request, and the end of the socket, ends it.
"""

import json
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Final, NoReturn, Self

from dissector.capture.errors import CaptureError
from dissector.capture.live.local_processes import Pair, processes_of
from dissector.capture.live.recorder_process import RecorderProcess, execute_recorder, start_recorder
from dissector.capture.live.rights import Rights
from dissector.capture.live.settings import CaptureSettings
from dissector.capture.process_notes import Process

_CAPTURE, _PROCESSES = b"c", b"p"
_HEAD: Final = struct.Struct("=cI")
_SIZE: Final = struct.Struct("=I")
_MOST_RECORDERS: Final = 4
"""That run at once: one, and those that are still ending."""
_USERS: Final = (0, 1)
"""Standard input and output: their other ends wait for who has them."""
_MOST_BYTES: Final = 1 << 20
"""Of a request: all ends that one lookup is for."""


class RightHolder:
    """The other process, as the analyzing one knows it. It ends with `close`, or when this process ends."""

    warning = ""
    """What could not be given up."""

    def __init__(self, settings: CaptureSettings) -> None:
        """Begin it, before there are other threads; `settings` are those of the first capture."""
        self._one_at_a_time = threading.Lock()
        self._socket, its = socket.socketpair()
        first = os.fork()
        if not first:
            self._socket.close()
            _go_on_alone(settings, its)
        os.waitpid(first, 0)
        its.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def start_recorder(self) -> RecorderProcess:
        """Start the next capture. Raises `CaptureError`."""
        ours, its = socket.socketpair()
        with its:
            answer = self._ask(_CAPTURE, b"", [its.fileno()])
        if not answer.isdigit():
            ours.close()
            raise CaptureError(answer.decode(errors="replace") or "the process with the rights to capture has ended")
        return RecorderProcess(ours, int(answer), lambda: None)

    def processes_of(self, pairs: Collection[Pair]) -> dict[Pair, Process]:
        """Look up processes, as `local_processes.processes_of` does."""
        asked = list(pairs)
        answer = self._ask(_PROCESSES, "\n".join(map(" ".join, asked)).encode())
        found = json.loads(answer or b"[]")
        return {asked[number]: Process(name, pid, container) for number, name, pid, container in found}

    def _ask(self, kind: bytes, content: bytes, files: Collection[int] = ()) -> bytes:
        """Return the answer to a request; nothing if it has ended."""
        with self._one_at_a_time:
            try:
                socket.send_fds(self._socket, [_HEAD.pack(kind, len(content))], [*files])
                self._socket.sendall(content)
                return _received(self._socket, *_SIZE.unpack(_received(self._socket, _SIZE.size)))
            except (OSError, struct.error):
                return b""


def start_and_give_up_rights(settings: CaptureSettings) -> tuple[RecorderProcess, RightHolder | None]:
    """Start the capture process, and give up the rights of this process, if it has any; return who keeps them. No other
    thread may run yet. Raises `CaptureError`."""
    rights = Rights()
    holder = RightHolder(settings) if rights.are_held else None
    process = start_recorder(settings)
    rights.give_up()
    if holder is not None:
        holder.warning = rights.warning
    return process, holder


def _go_on_alone(settings: CaptureSettings, asked: socket.socket) -> NoReturn:
    """In the forked process: answer from another one, which is nobody's child and has nobody's terminal."""
    try:
        os.setsid()
        if not os.fork():
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in _USERS:
                os.dup2(nothing, number)
            _answer_all(settings, asked)
    finally:
        os._exit(0)


def _answer_all(settings: CaptureSettings, asked: socket.socket) -> None:
    """Answer until the other side ends, or asks for what is none of these."""
    recorders: list[subprocess.Popen[bytes]] = []
    with suppress(OSError):
        while True:
            head, files, _, _ = socket.recv_fds(asked, _HEAD.size, 1)
            if len(head) != _HEAD.size:
                return
            kind, size = _HEAD.unpack(head)
            if size > _MOST_BYTES:
                return
            content = _received(asked, size)
            if kind == _CAPTURE and len(files) == 1 and not content:
                recorders = [each for each in recorders if each.poll() is None]
                if len(recorders) >= _MOST_RECORDERS:
                    return
                settings = settings.for_next_capture()
                answer = _recorder_started(settings, files[0], recorders)
            elif kind == _PROCESSES and not files:
                answer = _processes(content)
            else:
                return
            asked.sendall(_SIZE.pack(len(answer)) + answer)


def _recorder_started(settings: CaptureSettings, channel: int, recorders: list[subprocess.Popen[bytes]]) -> bytes:
    """Add a process to those that were started; return its id, or why there is none."""
    try:
        recorders.append(execute_recorder(settings, channel))
        return str(recorders[-1].pid).encode()
    except CaptureError as error:
        return str(error).encode()
    finally:
        os.close(channel)


def _processes(content: bytes) -> bytes:
    asked = {(one, other): number for number, (one, _, other) in enumerate(_words(content))}
    found = processes_of(asked)
    return json.dumps([(asked[pair], *process) for pair, process in found.items()]).encode()


def _words(content: bytes) -> list[tuple[str, str, str]]:
    return [line.partition(" ") for line in content.decode(errors="replace").split("\n")]


def _received(asked: socket.socket, size: int) -> bytes:
    """Return so many bytes, or fewer if the other side has ended."""
    return asked.recv(size, socket.MSG_WAITALL) if size else b""
