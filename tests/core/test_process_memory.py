"""What a command frees goes back to the system while it runs; garbage collection is infrequent until it ends, and as
before afterwards."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.show import show
from dissector.core.process_memory import COLLECTION_THRESHOLD, infrequent_collection
from tests.cases import cases
from tests.conftest import PCAPS

PROGRAM = """
import numpy as np
from dissector.core.process_memory import return_freed_memory
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


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process has in memory")
def test_freed_blocks_are_given_back() -> None:
    assert resident("return_freed_memory()") < resident("pass") - 20


def test_show_collects_infrequently_while_it_reads(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usual = gc.get_threshold()
    seen = []

    class Watched(Capture):
        def read(self, **how: bool):
            seen.append(gc.get_threshold()[0])
            return super().read(**how)

    monkeypatch.setattr("dissector.capture_session.Capture", Watched)
    assert show([str(PCAPS / "java.pcapng")], Format.TEXT, None, "api_key") == 0
    assert seen == [COLLECTION_THRESHOLD]
    assert gc.get_threshold() == usual
    assert show([str(PCAPS / "java.pcapng")], Format.TEXT, 1, None) == 0
    assert gc.get_threshold() == usual


def test_what_a_command_leaves_is_not_searched_for_cycles_as_it_ends() -> None:
    usual, frozen, searched = gc.get_threshold(), gc.get_freeze_count(), []
    gc.set_threshold(700)
    gc.callbacks.append(lambda phase, _info: searched.append(phase))
    try:
        with infrequent_collection():
            held = [[] for _ in range(10_000)]
        held += [[] for _ in range(100)]
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*usual)
    assert searched == []
    assert gc.get_freeze_count() == frozen


HOLES = """
from contextlib import nullcontext
import dissector.core.process_memory as process_memory
from dissector.core.process_memory import infrequent_collection, trim
with {context}:
    held = [(bytearray(60_000), bytearray(600)) for _ in range(4_000)]
    held = [small for _, small in held]
    trim()
    print(process_memory._resident()[0] >> 20)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process has in memory")
@cases(("context", "is_given_back"), [("infrequent_collection()", True), ("nullcontext()", False)])
def test_pages_between_blocks_that_stay_are_given_back_in_commands(context: str, is_given_back: bool) -> None:
    program = HOLES.format(context=context)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert (int(done.stdout) < 120) == is_given_back


@pytest.mark.long
def test_arrow_has_no_pool_of_its_own_during_an_ingest(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="NOT TESTED with tables: deltalake is not installed")
    code = (
        "import sys\n"
        "from dissector.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import pyarrow\n"
        "print(pyarrow.default_memory_pool().backend_name)"
    )
    words = ["ingest", str(PCAPS / "java.pcapng"), "--out", str(tmp_path / "tables")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "system"


COLLECTED = """
import gc
from dissector.core import process_memory
gc.disable()
large = [b'x' * {size}]  # in a cycle, as what a closed capture leaves behind
large.append(large)
del large
process_memory.collect()
print(gc.collect())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process has in memory")
@pytest.mark.parametrize(("size", "is_left"), [(200 << 20, False), (10, True)])
def test_garbage_is_collected_between_steps_if_it_may_be_much(size: int, is_left: bool) -> None:
    program = COLLECTED.format(size=size)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert bool(int(done.stdout)) == is_left
