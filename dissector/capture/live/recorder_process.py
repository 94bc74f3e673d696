"""Starts a recording process: `python -m RECORDER SETTINGS`, with a socket as standard input. What captures packets is
`dissector.capture.live.recorder`; the settings name the module.

Over the socket it gets comments to write and sends events (`events`); it ends when the other side of the socket ends.
"""

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from dissector.capture.errors import CaptureError
from dissector.capture.live.settings import RecordingSettings
from dissector.core.text import os_reason

_ROOT: Final = Path(__file__).parents[3]
"""The folder of the package, for the capture process's import path."""


class RecorderProcess(NamedTuple):
    """A capture process that was started: our end of its socket, its id, and how to wait for its end, if it is ours."""

    channel: socket.socket
    pid: int
    wait: Callable[[], object]


def start_recorder(settings: RecordingSettings) -> RecorderProcess:
    """Start it with the rights of this process, which it gives up. Raises `CaptureError`."""
    ours, its = socket.socketpair()
    with its:
        process = execute_recorder(settings, its.fileno())
    return RecorderProcess(ours, process.pid, process.wait)


def execute_recorder(settings: RecordingSettings, channel: int) -> subprocess.Popen[bytes]:
    """Start it with a socket to be its own. Raises `CaptureError`."""
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", settings.RECORDER, settings.as_json()]
    try:
        return subprocess.Popen(
            command,
            stdin=channel,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl+C reaches this process only, which then stops the other
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            words = f"settings of {len(command[-1]):,} characters are more than a program can be given"
            raise CaptureError(f"{words}; use fewer or shorter rules, ports or names") from None
        raise CaptureError(f"{sys.executable}: {os_reason(error)}") from None
