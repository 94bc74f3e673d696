"""The scenarios of the survey: what the programs do, where, and what happens to them meanwhile."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tools.lab.node import Cluster, Plan
from tools.lab.survey.admin import move_leader
from tools.lab.survey.clusters import DELAYED_PORT, ONE_BROKER, OTHER_PORT, PORT, SASL_PORT, SLOW_PORT, TWO_BROKERS
from tools.lab.survey.delay import delayed
from tools.lab.survey.visitor import visit

Event = Callable[[Cluster, str, str], None]
"""What happens to a cluster, given the topic and the group, while a client works."""
BEFORE_SECONDS, AFTER_SECONDS = 5, 8
"""Around what happens."""
CONNECT_SECONDS = 40
BUSY_CONNECTIONS = 3
"""Those of a producer and a consumer that have begun to work."""
ESTABLISHED = "01"
DOWN_SECONDS = 4
DELAY_SECONDS = 0.3


class SurveyScenario(NamedTuple):
    """One task of every client: recorded as `pcaps/clients/CLIENT/NAME-N.pcapng.zst`."""

    name: str
    title: str
    words: str
    plan: Plan = ONE_BROKER
    port: int = PORT
    """Where the client is sent to."""
    ports: tuple[int, ...] = ()
    """Further ones that are recorded."""
    partitions: int = 2
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    """What is there while it is recorded."""
    event: Event | None = None
    times: int = 1
    """How often it is recorded."""
    task: str = ""
    """What the programs are told to do, if it is that of another scenario."""


def _busy(port: int, event: Event, *arguments: Any) -> None:
    """Let happen what should, some time after a client has connected; return some time after that."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while _connections(port) < BUSY_CONNECTIONS and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(BEFORE_SECONDS)
    event(*arguments)
    time.sleep(AFTER_SECONDS)


def _restart(cluster: Cluster, _topic: str, _group: str) -> None:
    cluster.restart("broker-1", DOWN_SECONDS)


def _move(_cluster: Cluster, topic: str, _group: str) -> None:
    move_leader(topic)


def _visit(_cluster: Cluster, topic: str, group: str) -> None:
    visit(topic, group)


PLAIN = "plain"
SCENARIOS = (
    SurveyScenario(PLAIN, "plain", "100 records with keys to a topic of 2 partitions, consumed in a group, 7 s more;"
                   " all settings are defaults", times=3),
    SurveyScenario("changed", "plain, changed", "the same with other acks, gzip and another fetch wait"),
    SurveyScenario("idempotent", "idempotent", "100 records by an idempotent producer"),
    SurveyScenario("transactional", "transactional", "10 records committed, 10 aborted, 10 committed; read committed"),
    SurveyScenario("group-classic", "group, classic", "a second member joins a classic group and leaves",
                   partitions=4),
    SurveyScenario("group-kip848", "group, KIP-848", "a second member joins a group of KIP-848 and leaves",
                   partitions=4),
    SurveyScenario("rebalanced", "plain, rebalanced", "plain, while another member, which is not recorded, joins"
                   " the group and leaves", event=_visit, task=PLAIN),
    SurveyScenario("compression", "compression", "20 records in each codec that the client has, consumed"),
    SurveyScenario("large-batches", "large batches", "100 records of 5 kB at once, consumed"),
    SurveyScenario("slow-broker", "slow broker", "40 records, one each 20 ms; whatever the broker says comes"
                   f" {DELAY_SECONDS * 1000:g} ms late", port=DELAYED_PORT,
                   around=partial(delayed, DELAYED_PORT, SLOW_PORT, DELAY_SECONDS)),
    SurveyScenario("broker-restarted", "broker restarted", "three records a second are produced and consumed; the"
                   " broker is stopped and started again", event=partial(_busy, PORT, _restart)),
    SurveyScenario("auth-refused", "login refused", "SASL PLAIN with a wrong password, for 8 s at most",
                   port=SASL_PORT),
    SurveyScenario("leader-moved", "leader moved", "three records a second are produced and consumed; the partition"
                   " gets another leader", TWO_BROKERS, ports=(OTHER_PORT,), partitions=1,
                   event=partial(_busy, PORT, _move)),
)  # fmt: skip
"""Those of one cluster stand together."""


def _connections(port: int) -> int:
    """How many connections a server on this port of this machine has (Linux: `/proc/net/tcp`)."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(
        local.endswith(f":{port:04X}") and state == ESTABLISHED for _, local, _, state, *_ in map(str.split, lines)
    )
