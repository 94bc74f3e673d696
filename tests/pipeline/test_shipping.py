"""What is sent along is the whole of what reads captures, from a zip file, its tables included."""

import subprocess
import sys

import pytest

from tests.conftest import PCAPS

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.pipeline.spark_session import packed

READ = """
import sys
sys.path = [sys.argv[1], *(each for each in sys.path if each != sys.argv[3])]
import dissector
assert dissector.__file__.startswith(sys.argv[1])
from dissector.core.kernel import PATH, library
assert str(PATH).startswith(sys.argv[1])
library()
with dissector.open(sys.argv[2]) as capture:
    print(sum(bool(exchange.request.body) for exchange in capture.exchanges("kind == exchange && api == Produce")))
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_capture_is_read_by_what_was_sent() -> None:
    with packed() as path:
        words = (str(path), str(PCAPS / "java.pcapng"), str(PCAPS.parent))
        done = subprocess.run(
            [sys.executable, "-c", READ, *words], cwd=path.parent, capture_output=True, text=True, check=False
        )
    assert done.stderr == ""
    assert int(done.stdout) > 0
