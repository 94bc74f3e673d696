"""The clients of the survey: how each program runs, and what its client can't do."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.lab.tools import (
    HERE,
    classpath,
    client_python,
    client_version,
    compiled,
    earlier_go_program,
    fetched,
    go_program,
    node_folder,
    rust_program,
)

Program = Callable[[], list[str]]
"""Gives what to run, before the arguments SERVERS SCENARIO TOPIC GROUP; fetches and compiles it first if it must."""
PROGRAMS = Path(__file__).parent
OLD_JAVA = "3.9.2"
OLD_LIBRDKAFKA = "confluent-kafka==2.3.0"


class SurveyedClient(NamedTuple):
    """A client: `pcaps/clients/NAME/`."""

    name: str
    title: str
    package: str
    """As `client_version` knows it."""
    program: Program
    cannot: Mapping[str, str] = {}
    """The reasons for which it is not in a scenario."""
    needs: str = ""
    """A program without which it can't run."""
    only: tuple[str, ...] = ()
    """The scenarios that it is for; empty for all."""
    newer: str = ""
    """The name of the release that one upgrades to; empty for the newest."""

    def refusal(self, scenario: str) -> str:
        """Why it is not in a scenario; empty if it is."""
        return self.cannot.get(scenario, NOT_ITS_TASK if self.only and scenario not in self.only else "")

    @property
    def version(self) -> str:
        """The release that is fetched."""
        return client_version(self.package)


def java_program(release: str = "") -> list[str]:
    if release:
        jars = fetched(HERE / "old" / "client.xml", f"client-{release}", f"-Drelease={release}")
        path = compiled(PROGRAMS / "java", jars, f"classes-survey-{release}")
    else:
        path = compiled(PROGRAMS / "java", Path(classpath().rpartition(":")[2]).parent, "classes-survey")
    return ["java", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path, "Survey"]


def framework_program(name: str, release: str) -> list[str]:
    jars = fetched(HERE / "old" / "frameworks.xml", f"frameworks-{release}", f"-Drelease={release}")
    path = compiled(PROGRAMS / "frameworks", jars, f"classes-frameworks-{release}")
    return ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path, "Frameworks", name]


def python_program(program: str, pinned: str = "", python_release: str = "") -> list[str]:
    return [str(client_python(pinned, python_release)), "-m", f"tools.lab.survey.python.{program}"]


def go_client(client: str, release: str = "") -> list[str]:
    return [str(earlier_go_program(client, release) if release else go_program(client, "survey"))]


def node_program(program: str) -> list[str]:
    return ["node", str(node_folder() / program)]


NEXT_GENERATION = "group-kip848"
NO_KIP848 = "has no KIP-848 protocol"
NO_GROUPS = "has no groups"
NO_TRANSACTIONS = "has no transactions"
NO_IDEMPOTENCE = "has no idempotent producer"
NOT_ITS_TASK = "is not for clients"

CLIENTS = (
    SurveyedClient("java-4.3", "Java 4.3", "java", java_program),
    SurveyedClient("java-3.9", "Java 3.9", f"java {OLD_JAVA}", partial(java_program, OLD_JAVA),
                   newer="java-4.3"),
    SurveyedClient("librdkafka-2.16", "librdkafka 2.16", "confluent-kafka", partial(python_program, "librdkafka")),
    SurveyedClient("librdkafka-2.3", "librdkafka 2.3", OLD_LIBRDKAFKA,
                   partial(python_program, "librdkafka", OLD_LIBRDKAFKA), {NEXT_GENERATION: NO_KIP848},
                   newer="librdkafka-2.16"),
    SurveyedClient("kafka-python", "kafka-python", "kafka-python", partial(python_program, "kafka_python"),
                   {NEXT_GENERATION: NO_KIP848}),
    SurveyedClient("aiokafka", "aiokafka", "aiokafka", partial(python_program, "asyncio_client"),
                   {NEXT_GENERATION: NO_KIP848}),
    SurveyedClient("franz-go", "franz-go", "franz-go", partial(go_client, "franz-go"), needs="go"),
    SurveyedClient("sarama", "sarama", "sarama", partial(go_client, "sarama"), {NEXT_GENERATION: NO_KIP848}, "go"),
    SurveyedClient("kafka-go", "kafka-go", "kafka-go", partial(go_client, "kafka-go"),
                   {NEXT_GENERATION: NO_KIP848, "transactional": NO_TRANSACTIONS, "idempotent": NO_IDEMPOTENCE}, "go"),
    SurveyedClient("kafkajs", "kafkajs", "kafkajs", partial(node_program, "survey-kafkajs.js"),
                   {NEXT_GENERATION: NO_KIP848}, "npm"),
    SurveyedClient("platformatic", "@platformatic/kafka", "@platformatic/kafka",
                   partial(node_program, "survey-platformatic.mjs"), needs="npm"),
    SurveyedClient("rskafka", "rskafka", "rskafka", lambda: [str(rust_program("survey"))],
                   {NEXT_GENERATION: NO_GROUPS, "group-classic": NO_GROUPS, "rebalanced": NO_GROUPS,
                    "transactional": NO_TRANSACTIONS, "idempotent": NO_IDEMPOTENCE}, "cargo"),
)  # fmt: skip
