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

    @property
    def version(self) -> str:
        """The release that is fetched."""
        return client_version(self.package)


def _java(release: str = "") -> list[str]:
    if release:
        jars = fetched(HERE / "old" / "client.xml", f"client-{release}", f"-Drelease={release}")
        path = compiled(PROGRAMS / "java", jars, f"classes-survey-{release}")
    else:
        path = compiled(PROGRAMS / "java", Path(classpath().rpartition(":")[2]).parent, "classes-survey")
    return ["java", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path, "Survey"]


def _python(program: str, pinned: str = "") -> list[str]:
    return [str(client_python(pinned)), "-m", f"tools.lab.survey.python.{program}"]


def _go(client: str) -> list[str]:
    return [str(go_program(client, "survey"))]


def _node(program: str) -> list[str]:
    return ["node", str(node_folder() / program)]


NEXT_GENERATION = "group-kip848"
NO_KIP848 = "has no KIP-848 protocol"
NO_GROUPS = "has no groups"
NO_TRANSACTIONS = "has no transactions"
NO_IDEMPOTENCE = "has no idempotent producer"

CLIENTS = (
    SurveyedClient("java-4.3", "Java 4.3", "java", _java),
    SurveyedClient("java-3.9", "Java 3.9", f"java {OLD_JAVA}", partial(_java, OLD_JAVA)),
    SurveyedClient("librdkafka-2.16", "librdkafka 2.16", "confluent-kafka", partial(_python, "librdkafka")),
    SurveyedClient("librdkafka-2.3", "librdkafka 2.3", OLD_LIBRDKAFKA,
                   partial(_python, "librdkafka", OLD_LIBRDKAFKA), {NEXT_GENERATION: NO_KIP848}),
    SurveyedClient("kafka-python", "kafka-python", "kafka-python", partial(_python, "kafka_python"),
                   {NEXT_GENERATION: NO_KIP848}),
    SurveyedClient("aiokafka", "aiokafka", "aiokafka", partial(_python, "asyncio_client"),
                   {NEXT_GENERATION: NO_KIP848}),
    SurveyedClient("franz-go", "franz-go", "franz-go", partial(_go, "franz-go"), needs="go"),
    SurveyedClient("sarama", "sarama", "sarama", partial(_go, "sarama"), {NEXT_GENERATION: NO_KIP848}, "go"),
    SurveyedClient("kafka-go", "kafka-go", "kafka-go", partial(_go, "kafka-go"),
                   {NEXT_GENERATION: NO_KIP848, "transactional": NO_TRANSACTIONS, "idempotent": NO_IDEMPOTENCE}, "go"),
    SurveyedClient("kafkajs", "kafkajs", "kafkajs", partial(_node, "survey-kafkajs.js"), {NEXT_GENERATION: NO_KIP848},
                   "npm"),
    SurveyedClient("platformatic", "@platformatic/kafka", "@platformatic/kafka",
                   partial(_node, "survey-platformatic.mjs"), needs="npm"),
    SurveyedClient("rskafka", "rskafka", "rskafka", lambda: [str(rust_program("survey"))],
                   {NEXT_GENERATION: NO_GROUPS, "group-classic": NO_GROUPS, "transactional": NO_TRANSACTIONS,
                    "idempotent": NO_IDEMPOTENCE}, "cargo"),
)  # fmt: skip
