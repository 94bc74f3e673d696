"""What a capability that is permitted and not effective lets a process do."""

import subprocess
import sys
import textwrap

import pytest

from tests.capture.live.loopback import needs_rights

PERMITTED_ONLY = textwrap.dedent("""
    import ctypes, socket

    header, data = (ctypes.c_uint32 * 2)(0x2008_0522, 0), (ctypes.c_uint32 * 6)(0, 1 << 13)
    assert ctypes.CDLL(None).capset(header, data) == 0
    from dissector.capture.live.rights import Rights

    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        print("refused")
    rights = Rights()
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    capabilities = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
    print(*(int(each, 16) >> 13 & 1 for each in capabilities[:3]))
    rights.give_up()
    print(*(int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff"))))
""")
"""In a process that may capture: as the kernel starts a program with the file capability ``cap_net_raw+p``. The second
line is what it may inherit, is permitted and uses. Threads that imports start have no more than it has."""


@needs_rights
def test_a_permitted_capability_is_used_and_not_inherited() -> None:
    done = subprocess.run([sys.executable, "-c", PERMITTED_ONLY], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("refused\n0 1 1\n0 0\n", "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("prepared", "said"),
    [
        (
            "libc.prctl(24, 13, 0, 0, 0)",
            "nothing here may have CAP_NET_RAW; a container gets it with --cap-add=NET_RAW",
        ),
        (
            "os.setuid(1234); libc.prctl(38, 1, 0, 0, 0)",
            "no-new-privileges is set, so no program gains rights; capture as root, or without it",
        ),
        ("os.setuid(1234)", ""),
        ("libc.prctl(38, 1, 0, 0, 0)", ""),
    ],
    ids=["container", "no-new-privileges", "user", "root"],
)
@needs_rights
def test_who_can_gain_no_rights_is_not_sent_to_sudo(prepared: str, said: str) -> None:
    """PR_CAPBSET_DROP of CAP_NET_RAW, PR_SET_NO_NEW_PRIVS; root is not hindered by the latter."""
    words = f"import ctypes, os; libc = ctypes.CDLL(None); {prepared}; print(why_nobody_captures())"
    program = f"from dissector.capture.live.privileges import why_nobody_captures; {words}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{said}\n", "")
