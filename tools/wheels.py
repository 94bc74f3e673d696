"""Makes all wheels of this version on one machine, and the source archive, in `dist/`: `make wheels`.

ziglang compiles for each platform what `hatch_build.py` asks for. A platform that is not in the table installs from the
source archive, with its own compiler or ziglang's. Windows is not in it: captures are mapped and polled as POSIX does.
"""

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
LIBRARY: Final = "dissector/protocol/kernel/libkernel.so"
ELF: Final = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0"
MACH_O: Final = b"\xcf\xfa\xed\xfe"
TARGETS: Final = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", ELF + b"\x3e\0"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", ELF + b"\xb7\0"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", ELF + b"\x3e\0"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", ELF + b"\xb7\0"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", MACH_O + b"\7\0\0\1"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", MACH_O + b"\x0c\0\0\1"),
}
"""The platform of a wheel (PEP 600, PEP 656), what zig calls it, and how a shared object for its processor begins."""


def hatchling(target: str, **environment: str) -> None:
    """Run one build of hatchling, which prints the file that it made."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(DIST)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    for platform, (target, beginning) in TARGETS.items():
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-s"]
        hatchling("wheel", CC=shlex.join(compiler), _PYTHON_HOST_PLATFORM=platform)
        (wheel,) = DIST.glob(f"*-py3-none-{platform}.whl")
        with zipfile.ZipFile(wheel) as archive:
            if not archive.read(LIBRARY).startswith(beginning):
                sys.exit(f"{wheel}: {LIBRARY} is not for {platform}")
    hatchling("sdist")


if __name__ == "__main__":
    main()
