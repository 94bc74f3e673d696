"""What the lab records: a name, a client, the command that runs it. A new recording is one line."""

from collections.abc import Callable
from typing import NamedTuple

from tests.lab.broker import PORT
from tests.lab.tools import HERE, client_python, client_version, kafka_version

SERVERS = f"127.0.0.1:{PORT}"


class Scenario(NamedTuple):
    """One recording: `pcaps/NAME.pcapng` and what goes with it."""

    name: str
    client: str
    words: str
    command: Callable[[str], list[str]]
    """Takes the class path of Java's client."""


def _python(program: str, scenario: str) -> Callable[[str], list[str]]:
    return lambda _: [str(client_python()), str(HERE / "clients" / program), SERVERS, scenario]


def _java(scenario: str) -> Callable[[str], list[str]]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return lambda classpath: ["java", "-Xmx256m", quiet, "-cp", classpath, "LabClient", SERVERS, scenario]


EVERYDAY = "create a topic, produce with keys and headers in each codec, consume in a group, commit, describe, delete"

SCENARIOS = (
    Scenario("librdkafka", "confluent-kafka", EVERYDAY, _python("librdkafka.py", "everyday")),
    Scenario("librdkafka-acks0", "confluent-kafka", "produce with acks=0", _python("librdkafka.py", "acks0")),
    Scenario("librdkafka-pipelined", "confluent-kafka", "many produce requests in flight",
             _python("librdkafka.py", "pipelined")),
    Scenario("librdkafka-kip848", "confluent-kafka", "consume with the KIP-848 protocol",
             _python("librdkafka.py", "consumer_protocol")),
    Scenario("librdkafka-transactions", "confluent-kafka", "commit, abort, commit",
             _python("librdkafka.py", "transactions")),
    Scenario("kafka-python", "kafka-python", EVERYDAY, _python("pure_python.py", "everyday")),
    Scenario("aiokafka", "aiokafka", EVERYDAY, _python("asyncio_client.py", "everyday")),
    Scenario("java", "java", EVERYDAY, _java("everyday")),
    Scenario("java-admin", "java", "every call of the admin client that one broker can answer", _java("admin")),
    Scenario("java-transactions", "java", "consume, transform, produce in transactions; one is aborted",
             _java("transactions")),
    Scenario("java-share", "java", "a share group", _java("share")),
    Scenario("java-kip848", "java", "two members of a KIP-848 group, a rebalance", _java("kip848")),
    Scenario("java-classic", "java", "two members of a classic group, a rebalance", _java("classic")),
)  # fmt: skip


def version_of(client: str) -> str:
    """The client's release."""
    return kafka_version() if client == "java" else client_version(client)
