"""Python programs in processes of their own, without the half second in which Python starts and imports numpy.

`run_module` is `python -m MODULE WORDS…`: three pipes, an environment, an exit code. The process is forked from one
that has imported what the command line imports and done nothing else; each worker of the tests has one of these.

Invariants:
  * what a program writes, and how it ends, is what a new process would have written: it runs as `__main__`, and Python
    ends as always, with exit handlers and flushes;
  * nothing is left over from one program to the next: they share no process.
"""

import atexit
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import typer  # noqa: F401  # as the command line does

import dissector.cli

_MOST: Final = 1 << 20
"""Bytes that the words and the environment of a program may have."""
_one_at_a_time: Final = threading.Lock()


def run_module(
    module: str, words: Sequence[str], environment: dict[str, str], *, data: bytes = b"", file: IO[bytes] | None = None,
    output: IO[bytes] | None = None, longest: float = 60,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run a module to its end. Standard input is a pipe with `data`, or a file, standard output a pipe or `output`.

    Raises `subprocess.TimeoutExpired` after `longest` seconds, when the program is killed.
    """
    (stdin, input_end), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    if file is not None:
        os.dup2(file.fileno(), stdin)
    if output is not None:
        os.dup2(output.fileno(), stdout)
    with ThreadPoolExecutor(3) as pool:
        pool.submit(_write_all, input_end, data)
        written = pool.submit(_read_all, out), pool.submit(_read_all, err)
        code = run_module_with(module, words, environment, (stdin, stdout, stderr), longest=longest)
        return subprocess.CompletedProcess([module, *words], code, written[0].result(), written[1].result())


def run_module_with(
    module: str, words: Sequence[str], environment: dict[str, str], files: Sequence[int], *, longest: float = 60
) -> int:
    """Run a module to its end with three open files as its standard streams, which are closed here; return its exit
    code. Raises `subprocess.TimeoutExpired` as `run_module` does."""
    with _one_at_a_time:
        parent = _parent()
        parent.sendall(json.dumps([module, *words]).encode())
        socket.send_fds(parent, [json.dumps([environment, str(Path.cwd())]).encode()], files)
        for end in files:
            os.close(end)
        process = int(parent.recv(64))
        parent.settimeout(longest)
        try:
            return int(parent.recv(64))
        except TimeoutError:
            os.killpg(process, signal.SIGKILL)
            parent.settimeout(None)
            parent.recv(64)
            raise subprocess.TimeoutExpired([module, *words], longest) from None
        finally:
            parent.settimeout(None)


def _write_all(pipe: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


def _read_all(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as stream:
        return stream.read()


@functools.cache
def _parent() -> socket.socket:
    """Our end of the line to the process that forks; it ends when we do."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([sys.executable, "-m", "tests.forked", str(its.fileno())], pass_fds=[its.fileno()],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    its.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(line: socket.socket) -> None:
    """Fork a program for each request, until the line ends. In the fork, run it."""
    for found in pkgutil.iter_modules(dissector.cli.__path__, "dissector.cli."):
        if not found.name.endswith(".main"):  # which will be `__main__`
            importlib.import_module(found.name)
    gc.freeze()  # or each fork's collections would copy all of it
    while words := line.recv(_MOST):
        rest, files, _, _ = socket.recv_fds(line, _MOST, 3)
        process = os.fork()
        if not process:
            line.close()
            environment, folder = json.loads(rest)
            _become(json.loads(words), environment, folder, files)
            return
        for file in files:
            os.close(file)
        line.sendall(str(process).encode())
        line.sendall(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _become(words: list[str], environment: dict[str, str], folder: str, files: list[int]) -> None:
    """Be `python -m` with these words, in a session of its own: what it starts can be ended with it."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # as Python does when it starts
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
