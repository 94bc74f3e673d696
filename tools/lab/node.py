"""Kafka processes on loopback, each with its request log at TRACE: every exchange is also printed as JSON.

A `Plan` says which processes. A `Cluster` formats their folders and cleans up behind them; between, they are started,
the first by itself, and stopped in the order that the plan names.
"""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.lab.tools import MissingToolError, require, run

START_SECONDS = 60
STOP_SECONDS = 20
SETTLE_SECONDS = 3
"""The port is open before a broker is unfenced, and before a controller has joined its quorum."""
LOGS = Path("/tmp/kafka-logs/lab")
"""DescribeLogDirs puts this path on the wire, so it must not say whose machine it is. Not `/tmp/kafka-logs` itself:
that is Kafka's default, and what is there may be somebody's."""
CLUSTER_ID = "a2Rpc3NlY3QtbGFiLTAwMQ"
TRACED = {
    "kafka.request.logger": "trace",
    "org.apache.kafka.common.security.authenticator.SaslServerAuthenticator": "debug",
    "org.apache.kafka.coordinator.group": "info",
    "kafka.coordinator.group": "info",
}
"""What is logged beyond warnings. Requests of a login never reach the request log; the authenticator tells of them.
Coordinators say why a group rebalances: the former name is that of Kafka 4, the latter that of Kafka 3."""


@dataclass(frozen=True)
class NodePlan:
    """One process: the port on which it is reached, its server.properties, what its folder is formatted with."""

    name: str
    port: int
    properties: str
    formatting: tuple[str, ...] = ()
    memory: str = "-Xmx512m"
    agent: str = ""
    """A Java agent, `JAR=ARGUMENT`, among the jars of the class path."""
    options: tuple[str, ...] = ()
    """More options of Java."""


@dataclass(frozen=True)
class Plan:
    """A cluster of one release: the node that starts first, the others, and how they stop."""

    release: str
    nodes: tuple[NodePlan, ...]
    stopping: tuple[str, ...] = ()
    """Names; empty for the reverse of starting."""
    prepare: Callable[[], None] | None = None
    """What makes the files that the properties name."""
    whole: bool = False
    """Recorded from before its start until after its end, since what nodes say then is what the recording is for."""
    logs: Path = LOGS
    """The folder of its log directories."""


class Node:
    """One process; `log` is the file with its request log."""

    def __init__(self, plan: NodePlan, classpath: str, home: Path) -> None:
        self._plan = plan
        self._java = [require("java"), plan.memory, *plan.options]
        self._agent = [f"-javaagent:{Path(classpath).parent / plan.agent}"] if plan.agent else []
        self._classpath = ["-cp", classpath]
        self._config = home / f"{plan.name}.properties"
        self._config.write_text(plan.properties)
        self.log = home / f"{plan.name}.log"
        self.log.touch()
        self._process: subprocess.Popen[bytes] | None = None

    def format(self) -> None:
        """Make its folder; not if its port is somebody else's."""
        if _listens(self._plan.port):
            raise MissingToolError(f"port {self._plan.port} is taken: stop what listens there")
        run(*self._java, *self._classpath, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID,
            "-c", self._config, *self._plan.formatting)  # fmt: skip

    def start(self) -> None:
        """Run it."""
        loggers = [f"-Dorg.slf4j.simpleLogger.log.{name}={level}" for name, level in TRACED.items()]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with self.log.open("ab") as log:
            command = [*self._java, *self._agent, quiet, *loggers, *self._classpath, "kafka.Kafka", str(self._config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self) -> None:
        """Until it listens."""
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not _listens(self._plan.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise MissingToolError(f"{self._plan.name} did not start: {self._said()}")
            time.sleep(0.5)

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-800:]

    def stop(self) -> None:
        """A clean shutdown, if it runs; by force when it takes too long."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


class Cluster:
    """The nodes of a plan; their folders are there while the context is open, before `start` and after `stop` too."""

    def __init__(self, plan: Plan, classpath: str) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="kdissect-lab-"))
        self._plan = plan
        self._nodes = {node.name: Node(node, classpath, self._home) for node in plan.nodes}
        self.logs = [node.log for node in self._nodes.values()]

    def __enter__(self) -> Self:
        shutil.rmtree(self._plan.logs, ignore_errors=True)
        try:
            for node in self._nodes.values():
                node.format()
        except MissingToolError:
            self.__exit__(None, None, None)
            raise
        return self

    def start(self) -> None:
        """Start them all: the others have somebody to turn to when the first one is there."""
        first, *others = self._nodes.values()
        for group in ([first], others):
            for node in group:
                node.start()
            for node in group:
                node.wait()
        time.sleep(SETTLE_SECONDS)

    def restart(self, name: str, pause_seconds: float) -> None:
        """Stop a node and start it again; return when it listens."""
        node = self._nodes[name]
        node.stop()
        time.sleep(pause_seconds)
        node.start()
        node.wait()

    def stop(self) -> None:
        """Stop every node that runs."""
        for name in self._plan.stopping or reversed(self._nodes):
            self._nodes[name].stop()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self._plan.logs, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._plan.logs.parent.rmdir()  # fails if it holds what is not ours
        shutil.rmtree(self._home, ignore_errors=True)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False
