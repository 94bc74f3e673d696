"""Runs commands in forks of one process that has imported the program, so that thousands of runs cost no start-up.

Run as a file, not as a module, with the version of the program that is meant first on the path. Each line of stdin is
the words of a command, as JSON. Answers are lines: the process that runs it, in a group of its own, and when it is done
the CPU seconds that it took, and what went wrong. Its output is thrown away. What the first command imported is then
imported here: all commands of one process are to be forms of the same. The memory of this process counts to that of
the command, which would have the same modules.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import tempfile
from typing import IO, Final

MOST_CPU: Final = 10
"""Seconds. The system ends a command that takes more."""


def main() -> None:
    """Answer until stdin ends."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the program does: a fork has no threads
    importlib.import_module("dissector.cli.main")
    for number, line in enumerate(sys.stdin):
        with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile("w+") as modules:
            process = os.fork()
            if not process:
                _run(json.loads(line), complaints, modules)
            print(process, flush=True)
            _, status, usage = os.wait4(process, 0)
            if not number:
                _import(modules)
            complaints.seek(0)
            cpu = usage.ru_utime + usage.ru_stime
            print(json.dumps([cpu, _failure(status, complaints.read())]), flush=True)


def _import(modules: IO[str]) -> None:
    modules.seek(0)
    for name in modules.read().split():
        with contextlib.suppress(Exception):  # a part of a module that is there by another name
            importlib.import_module(name)


def _run(words: list[str], complaints: IO[bytes], modules: IO[str]) -> None:
    """Run a command in this process, a fork, write which modules it has, and end it."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU))
    null = os.open(os.devnull, os.O_RDWR)
    for ours, other in ((null, 0), (null, 1), (complaints.fileno(), 2)):
        os.dup2(ours, other)
    if (expansion := sys.modules.get("dissector.core.expansion")) is not None:
        expansion.RUN.begin()  # its room is memory that all forks share, and a program has all of it
    sys.argv = ["kdissect", *words]
    code: object = 1
    try:
        sys.modules["dissector.cli.main"].main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            modules.write("\n".join(sys.modules))
            modules.flush()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _failure(status: int, complaints: bytes) -> str:
    """What went wrong, in words; nothing if it ended as it should, with a negative answer or a refusal too."""
    code = os.waitstatus_to_exitcode(status)
    if code in (0, 1, 2) and b"Traceback" not in complaints:  # which Python ends with 1, too
        return ""
    return f"exit code {code}: {complaints.decode(errors='replace')[-300:].strip()}"


if __name__ == "__main__":
    main()
