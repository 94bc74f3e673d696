"""One real broker in KRaft mode on loopback, its request log at TRACE: every exchange is also printed as JSON."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab.tools import MissingToolError, require, run

PORT = 9092
CONTROLLER_PORT = 9093
START_SECONDS = 60
LOGS = Path("/tmp/kafka-logs/lab")
"""DescribeLogDirs puts this path on the wire, so it must not say whose machine it is. Not `/tmp/kafka-logs` itself:
that is Kafka's default, and what is there may be somebody's."""
CLUSTER_ID = "a2Rpc3NlY3QtbGFiLTAwMQ"
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.consumer.heartbeat.interval.ms=1000
group.consumer.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=1000
group.share.min.heartbeat.interval.ms=500
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""


class Broker:
    """A broker that runs while the context is open. `log` is the file with its request log."""

    def __init__(self, classpath: str) -> None:
        self._classpath = classpath
        self._java = require("java")
        self._home = Path(tempfile.mkdtemp(prefix="kdissect-lab-"))
        self.log = self._home / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if _listens():
            self._clean()
            raise MissingToolError(f"port {PORT} is taken: stop what listens there")
        shutil.rmtree(LOGS, ignore_errors=True)
        config = self._home / "server.properties"
        config.write_text(PROPERTIES.format(port=PORT, controller=CONTROLLER_PORT, logs=LOGS))
        java = [self._java, "-Xmx1g", "-cp", self._classpath]
        format_command = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
        try:
            run(*format_command)
        except MissingToolError:
            self._clean()
            raise
        trace = "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=trace"
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with self.log.open("wb") as log:
            command = [self._java, "-Xmx1g", quiet, trace, "-cp", self._classpath, "kafka.Kafka", str(config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait()
        return self

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            if _listens():
                time.sleep(3)  # the port is open before the broker is unfenced
                return
            time.sleep(0.5)
        tail = self.log.read_text(errors="replace")[-800:]
        self.__exit__(None, None, None)
        raise MissingToolError(f"the broker did not start: {tail}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._clean()

    def _clean(self) -> None:
        shutil.rmtree(LOGS, ignore_errors=True)
        with contextlib.suppress(OSError):
            LOGS.parent.rmdir()  # fails if it holds what is not ours
        shutil.rmtree(self._home, ignore_errors=True)


def _listens() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", PORT), 1):
            return True
    except OSError:
        return False
