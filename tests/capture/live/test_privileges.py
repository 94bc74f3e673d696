"""What a capability that is permitted and not effective lets a process do."""

import subprocess
import sys
import textwrap

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
