"""Compiles the C files of this package to its shared object: `python dissector/protocol/kernel/build.py`.

`hatch_build.py` calls it when the program is installed or a wheel is made, and make after an edit of a C file, or of a
table in Python that the C files share (`shared.py`). It imports the standard library alone, as nothing else is there by
then.

The compiler is $CC, else `cc`, and where that does not work `python -m ziglang cc` of the package ziglang. $CFLAGS are
added. A $CC that fails is an error: what another compiler made might be for another machine.

zig's caches are in `build/zig` of the source tree: where the user's cache folder can't be made, it tries for ever.
"""

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
LIBRARY: Final = HERE / "libkernel.so"
ZIG: Final = [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", "-s"]
ZIG_CACHE: Final = HERE.parents[2] / "build" / "zig"
LONGEST: Final = 900.0
"""Seconds. The slowest that we have seen, zig without a cache on a busy machine, takes a minute."""
FLAGS: Final = ["-std=c11", "-O3", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden"]


def compile_library(compiler: list[str], out: Path) -> None:
    """Make the shared object `out`, whole or not at all. Raises `CalledProcessError`, `OSError`, and `SystemExit` with
    a line if it takes longer than `LONGEST`."""
    _write_header()
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(f"{out.name}.{os.getpid()}")
    flags = [*FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
    try:
        _run([*compiler, *flags, "-o", str(new), *map(str, sorted(HERE.glob("*.c")))])
        new.replace(out)  # a running process keeps the file that it has mapped
    finally:
        new.unlink(missing_ok=True)


def _run(command: list[str]) -> None:
    """Run a compiler to its end, or end it with what it started: zig is started by Python."""
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(ZIG_CACHE / "global"), "ZIG_LOCAL_CACHE_DIR": str(ZIG_CACHE / "local")}
    process = subprocess.Popen(command, env={**caches, **os.environ}, start_new_session=True)
    try:
        code = process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        words = " ".join(command[:3])
        raise SystemExit(
            f"compiling was ended after {LONGEST:g} seconds: {words}; CC=... names another compiler"
        ) from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code:
        raise subprocess.CalledProcessError(code, command)


def _write_header() -> None:
    """Run `shared.write`, of a file: the package can't be imported."""
    spec = importlib.util.spec_from_file_location("kernel_shared", HERE / "shared.py")
    assert spec
    assert spec.loader
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    shared.write()


def own_compiler() -> list[str] | None:
    """Return the command of the compiler to take, or None if there is none that works."""
    if chosen := shlex.split(os.environ.get("CC", "")):
        return chosen
    probe = b"#include <string.h>\nint nothing;"  # a compiler may be there without the headers of the C library
    command = ["cc", "-x", "c", "-fsyntax-only", "-"]
    try:
        subprocess.run(command, input=probe, check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ["cc"]


def main() -> None:
    """Make the shared object beside this file, or at the path that is given."""
    try:
        compile_library(own_compiler() or ZIG, Path(sys.argv[1]) if len(sys.argv) > 1 else LIBRARY)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
