"""Java's client through the proxy. The broker is a recording of one: a real one takes half a minute to start."""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import dissector
from tests.conftest import PCAPS
from tests.proxy_server.proxies import proxy

RECORDED: Final = PCAPS / "clients" / "java-4.3" / "plain-1.pcapng.zst"
TOPIC, GROUP, COUNT = "orders-java-4.3-plain-1", "readers", 100
PROGRAM: Final = Path(__file__).with_name("JavaClient.java")
PLACES: Final = (Path(__file__).parents[2] / "build" / "lab" / "jars", Path.home() / ".m2" / "repository")
"""Where `make lab` and Maven keep jars."""


def class_path() -> str:
    """The client's newest jar and what it logs with; the test is skipped where a machine has none."""
    if not all(map(shutil.which, ("java", "javac"))):
        pytest.skip("NOT TESTED with Java's client: there is no Java that compiles")
    found = [_newest(name) for name in ("kafka-clients", "slf4j-api")]
    if not all(found):
        pytest.skip("NOT TESTED with Java's client: its jars are not here; `make lab` fetches them")
    return os.pathsep.join(map(str, found))


def _newest(name: str) -> Path | None:
    jars = [jar for place in PLACES for jar in place.rglob(f"{name}-*.jar") if re.search(r"-[\d.]+\.jar$", jar.name)]
    return max(jars, key=lambda jar: [int(part) for part in re.findall(r"\d+", jar.name)], default=None)


@pytest.mark.long  # Java takes five seconds of CPU
def test_java_produces_and_consumes_through_the_proxy(tmp_path: Path) -> None:
    path = class_path()
    with dissector.serve(RECORDED) as broker, proxy(tmp_path, broker.bootstrap) as between:
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, PROGRAM, between.bootstrap, TOPIC, GROUP]
        done = subprocess.run([*command, str(COUNT)], capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        assert done.stdout.splitlines() == sorted(f"order {n}: {'teacup ' * 12}" for n in range(COUNT))
        with between.capture() as capture:
            exchanges = [each for each in capture.exchanges() if each.row.kind == "exchange"]
            answered = Counter(each.row.api for each in exchanges if each.response is not None)
            assert answered.keys() >= {"InitProducerId", "Produce", "Fetch", "JoinGroup", "OffsetCommit", "LeaveGroup"}
            assert answered["Produce"] == COUNT
            [broker_seen] = {str(each.row.server) for each in exchanges}
            assert broker_seen == broker.bootstrap, "it has its own name in the recording"
