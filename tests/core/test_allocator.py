"""What a command frees goes back to the system while it runs."""

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from dissector.core.allocator import return_freed_memory
{begin}
large = np.ones(3 << 20)  # once it is freed, glibc would not map blocks of this size any more
del large
blocks = [(np.ones(1 << 17), np.ones(8)) for _ in range(40)]
blocks = [small for _, small in blocks]
[resident] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:")]
print(resident // 1024)
"""


def resident(begin: str) -> int:
    """Megabytes of a process that has freed 40 blocks of one, between small ones that it keeps."""
    program = PROGRAM.format(begin=begin)
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process has in memory")
def test_freed_blocks_are_given_back() -> None:
    assert resident("return_freed_memory()") < resident("pass") - 20
