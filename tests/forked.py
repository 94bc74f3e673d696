"""Python programs in processes of their own, without the second in which Python starts and imports all that they need.

`run_module` is `python -m MODULE WORDS…`: three pipes, an environment, an exit code. `Program` is one that still runs,
as `subprocess.Popen` has it. The process is forked from one that has imported what programs of ours import, has read
one capture, so that schemas and readers of messages are there, and done nothing else; each worker of the tests has one
of these.

Invariants:
  * what a program writes, and how it ends, is what a new process would have written: it runs as `__main__`, and ends
    with exit handlers and flushes; only objects that modules hold are not freed. DuckDB would print those that are
    left: that it says nothing is held by a program that was not forked (`tests/cli/test_tables.py`);
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
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Self

import typer  # noqa: F401  # as the command line does
from _pytest.config import default_plugins

from dissector.core import expansion

_PACKAGES: Final = {
    "cli": ["dissector.cli", "dissector.pasted", "dissector.records.values", "dissector.tls"],
    "unread": ["dissector.cli"],
    "tables": [
        "dissector.cli", "dissector.filter", "dissector.tables", "dissector.pipeline.ingest_here", "deltalake",
        "deltalake.writer", "pyarrow.dataset", "pyarrow.parquet",
    ],
    "proxy": ["dissector.proxy_server", "asyncio", "ssl"],
    "screen": ["dissector.cli", "dissector.filter", "tui", "tui.features", "textual.app"],
    "api": [
        "dissector.api", "dissector.filter", "dissector.capture.live", "dissector.pytest_plugin", "pytest",
        *(f"_pytest.{name}" for name in default_plugins),
    ],
}  # fmt: skip
"""What programs of a kind import: our packages with all their modules. Each kind is forked from another process, as a
process with more modules takes longer to fork and to end. One for ``unread`` has read no capture: whose programs have
schemas of their own."""
_LEFT_OUT: Final = (
    "dissector.cli.main", "dissector.cli.every_command", "dissector.cli.web_server", "dissector.proxy_server.process",
    "dissector.tables.iceberg",
)  # fmt: skip
"""What will be `__main__`, and what imports that; what imports a library that looks for its settings in the current
folder, of which a forked process has none; and what serves pages, which are processes of their own."""
NOT_REWRITTEN: Final = "-W ignore::pytest.PytestAssertRewriteWarning"
"""For a forked pytest: the plugin's package is imported before it can rewrite the assertions there."""
_OURS: Final = ("dissector", "tui")
_CAPTURE: Final = str(Path(__file__).parents[1] / "pcaps" / "java.pcapng")
_STARTED: Final = ("cli", "unread")
_ANOTHER: Final = "another kind"
"""In place of a module: what is forked forks programs of another kind."""
_MOST: Final = 1 << 20
"""Bytes that the words and the environment of a program may have."""
_one_at_a_time: Final = threading.Lock()


def run_module(
    module: str, words: Sequence[str], environment: dict[str, str], *, data: bytes = b"", file: IO[bytes] | None = None,
    output: IO[bytes] | None = None, longest: float = 60, kind: str | None = None,
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
        code = run_module_with(module, words, environment, (stdin, stdout, stderr), longest=longest, kind=kind)
        return subprocess.CompletedProcess([module, *words], code, written[0].result(), written[1].result())


def run_module_with(
    module: str, words: Sequence[str], environment: dict[str, str], files: Sequence[int], *, longest: float = 60,
    kind: str | None = None,
) -> int:  # fmt: skip
    """Run a module to its end with three open files as its standard streams, which are closed here; return its exit
    code. Raises `subprocess.TimeoutExpired` as `run_module` does."""
    program = Program(module, words, environment, files, kind)
    try:
        return program.wait(longest)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        raise


class Program:
    """A module that runs, in a session of its own, with three open files as its standard streams, which are closed
    here. It is waited for, asked and ended as a `subprocess.Popen`."""

    def __init__(
        self, module: str, words: Sequence[str], environment: Mapping[str, str], files: Sequence[int],
        kind: str | None = None,
    ) -> None:  # fmt: skip
        self.args = [module, *words]
        self.returncode: int | None = None
        self._status, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            about = json.dumps([dict(environment), str(Path.cwd())]).encode()
            with _one_at_a_time:
                parent = _parent(kind or _kind(module, words))
                parent.sendall(json.dumps(self.args).encode())
                socket.send_fds(parent, [about], [*files, its.fileno()])
        finally:
            its.close()
            for end in files:
                os.close(end)
        self.pid = int(self._status.recv(64))

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, once it has ended. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = int(self._status.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class PipedProgram(Program):
    """One whose output comes as text through two pipes, and that has nothing to read. It ends with its context."""

    def __init__(self, module: str, *words: str) -> None:
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        super().__init__(module, words, os.environ, (os.open(os.devnull, os.O_RDONLY), stdout, stderr))
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


def _write_all(pipe: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


def _read_all(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as stream:
        return stream.read()


def _kind(module: str, words: Sequence[str]) -> str:
    """The kind of a program that draws no screen: whether it is the command line, and then, whether its words name
    tables or where they are to be."""
    if not module.startswith(_OURS):
        return "api"
    is_of_tables = words and (
        words[0] in ("ingest", "tables") or any("://" in each or _is_folder(each) for each in words)
    )
    return "tables" if is_of_tables else "cli"


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):  # no file can have that name
        return False


@functools.cache
def _parent(kind: str) -> socket.socket:
    """Our end of the line to the process that forks programs of a kind; it ends when we do. Only the first two are
    started: to import and read again what those of ``cli`` have would take a second for each of the others."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if kind in _STARTED:
        words = [sys.executable, "-m", "tests.forked", str(its.fileno()), kind]
        process = subprocess.Popen(words, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   start_new_session=True)  # fmt: skip
        atexit.register(process.wait)
    else:
        first = _parent("cli")
        first.sendall(json.dumps([_ANOTHER, kind]).encode())
        socket.send_fds(first, [b"{}"], [its.fileno()])
    its.close()
    atexit.register(ours.close)
    return ours


def _serve(line: socket.socket, kind: str) -> None:
    """Fork a program for each request, until the line ends. In the fork, run it. Their exit codes are sent as they
    end."""
    for package in _PACKAGES[kind]:
        _import_all(package)
    if kind == "cli":
        _read_capture()
    gc.freeze()  # or each fork's collections would copy all of it
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    servers: list[int] = []
    while True:
        if ended in select.select([line, ended], [], [])[0]:
            os.read(ended, _MOST)
            _report(running)
            continue
        if not (words := line.recv(_MOST)):
            break
        rest, files, _, _ = socket.recv_fds(line, _MOST, 4)
        what, *others = json.loads(words)
        status = files.pop()
        process = os.fork()
        if not process:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (line.detach(), ended, wake, *running.values()):
                os.close(each)
            if what == _ANOTHER:
                _serve(socket.socket(fileno=status), *others)
                os._exit(0)  # as `_end`
            os.close(status)
            environment, folder = json.loads(rest)
            _become([what, *others], environment, folder, files)
            return
        for file in files:
            os.close(file)
        if what == _ANOTHER:
            os.close(status)
            servers.append(process)
            continue
        os.write(status, str(process).encode())
        running[process] = status
    for each in servers:  # their lines have ended as well
        with suppress(ChildProcessError):
            os.waitpid(each, 0)


def _report(running: dict[int, int]) -> None:
    """Send the exit codes of those that have ended."""
    while running:
        process, code = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        status = running.pop(process, None)
        if status is None:  # one of `_ANOTHER`
            continue
        with suppress(BrokenPipeError):  # nobody waits for it
            os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
        os.close(status)


def _import_all(package: str) -> None:
    """Import a module, and if it is a package of ours, its modules; a library, if it is there."""
    with suppress(ModuleNotFoundError):
        found = importlib.import_module(package)
        modules = getattr(found, "__path__", ()) if package.startswith(_OURS) else ()
        for each in pkgutil.iter_modules(modules, f"{package}."):
            if each.name not in _LEFT_OUT:
                importlib.import_module(each.name)


def _read_capture() -> None:
    """Read a capture as programs do: most of what one does that reads few rows is to make readers of messages, which
    are the same in each. What it prints goes nowhere, as what this process prints."""
    for words in (["show", "-f", "json"], ["show", "-Y", "api != Metadata"], ["stats"]):
        sys.argv = ["kdissect", *words, _CAPTURE]
        with suppress(SystemExit):
            runpy.run_module("dissector.cli.main", run_name="__main__")
    assert threading.active_count() == 1, "a fork has no other thread than the one that forks"


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
    expansion.RUN.begin()  # its room is memory that all forks share, and a program has all of it
    code: object = None
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    if code is None or isinstance(code, int):
        _end(code or 0)
    sys.exit(code)


def _end(code: int) -> None:
    """End as Python does, but for taking apart all that was imported, which takes longer than most of these programs
    run. Return if standard output can't be written: Python says so."""
    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls first; not in its stub
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    os._exit(0)  # as `_end`
