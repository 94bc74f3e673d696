"""What only Linux has is not needed: the program runs without it, as on macOS.

Each process here first loses the names that other systems' modules lack; the kernel beneath stays Linux's.
"""

import os
import subprocess
import sys

import pytest

from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, some_of

JAVA = str(PCAPS / "java.pcapng")
OF_LINUX = {
    "os": (
        "sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd", "splice", "copy_file_range", "pidfd_open",
        "posix_fadvise", "posix_fallocate", "getrandom", "setns", "unshare", "O_DIRECT", "O_PATH",
        "O_LARGEFILE", "getxattr",
    ),
    "socket": ("AF_PACKET", "AF_NETLINK", "AF_VSOCK", "SO_BINDTODEVICE", "SO_MARK", "PACKET_HOST", "SOCK_CLOEXEC"),
    "select": ("epoll",),
    "mmap": ("MAP_POPULATE", "MAP_STACK", "MADV_REMOVE", "MADV_HUGEPAGE", "MADV_DONTFORK", "MADV_DONTDUMP"),
    "signal": ("SIGRTMIN", "SIGPWR", "SIGPOLL", "sigtimedwait", "sigwaitinfo"),
    "resource": ("prlimit", "RLIMIT_MSGQUEUE", "RLIMIT_NICE"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_TAI"),
}  # fmt: skip
"""By module, what macOS's Python does not have."""
WITHOUT = f"""
import importlib, os, sys, urllib.request  # which asks macOS itself for proxies
for module, names in {OF_LINUX!r}.items():
    found = importlib.import_module(module)
    for name in names:
        if hasattr(found, name):
            delattr(found, name)
sys.platform = "darwin"
"""


def ran(code: str, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"{before}\nimport sys\n{code}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "100"})


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    some_of(
        [
            ("show", JAVA, "-f", "json"),
            ("show", JAVA, "-Y", "error"),
            ("stats", JAVA),
            ("check", JAVA),
            ("diff", JAVA, str(PCAPS / "librdkafka.pcapng")),
        ],
        ("show", JAVA, "-f", "json"),
        ("stats", JAVA),
    ),
    ids=lambda words: " ".join(words[:1]),
)
def test_commands_print_the_same_without_what_only_linux_has(words: tuple[str, ...]) -> None:
    run = "from dissector.cli.main import main; main()"
    there, here = ran(run, *words, before=WITHOUT), kdissect(*words)
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout.decode()), there.stderr


@pytest.mark.long
@pytest.mark.slow
def test_bytes_are_opened_without_files_in_memory() -> None:
    code = "import dissector; print(len(dissector.open(open(sys.argv[1], 'rb').read())))"
    assert ran(code, JAVA, before=WITHOUT).stdout == ran(code, JAVA).stdout


@pytest.mark.long
@pytest.mark.slow
def test_every_module_of_the_screen_and_of_live_capture_is_imported() -> None:
    code = (
        "import pkgutil, importlib, tui, dissector.capture.live as live\n"
        "for package in (tui, live):\n"
        "    for each in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(each.name)\n"
    )
    done = ran(code, before=WITHOUT)
    assert done.returncode == 0, done.stderr
