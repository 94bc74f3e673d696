"""What the lab records: a name, a client, the command that runs it. A new recording is one line."""

from collections.abc import Callable
from typing import NamedTuple

from tests.lab.broker import PORT
from tests.lab.tools import HERE, client_python, go_program, node_folder

SERVERS = f"127.0.0.1:{PORT}"
Command = Callable[[str], list[str]]
"""Takes the class path of Java's client, gives what to run; fetches and compiles it first if it must."""


class Scenario(NamedTuple):
    """One recording: `pcaps/NAME.pcapng` and what goes with it."""

    name: str
    client: str
    words: str
    command: Command
    needs: tuple[str, ...] = ()
    """Programs without which this one is left out; what all need, the lab refuses to start without."""


def _python(program: str, *arguments: str) -> Command:
    return lambda _: [str(client_python()), str(HERE / "clients" / program), SERVERS, *arguments]


def _java(scenario: str, program: str = "LabClient") -> Command:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return lambda classpath: ["java", "-Xmx256m", quiet, "-cp", classpath, program, SERVERS, scenario]


def _node() -> Command:
    return lambda _: ["node", str(node_folder() / "client.js"), SERVERS]


def _go(client: str, *arguments: str) -> Command:
    return lambda _: [str(go_program(client)), SERVERS, *arguments]


def _pretended(release: str, codec: str) -> Scenario:
    words = f"told that the broker is {release}: produce ({codec}), a transaction, consume, administer in old versions"
    return Scenario(f"kafka-python-as-{release}", "kafka-python", words, _python("pretended.py", release, codec))


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
    _pretended("0.11", "gzip"),
    _pretended("2.1", "snappy"),
    _pretended("2.5", "lz4"),
    _pretended("3.0", "zstd"),
    Scenario("aiokafka", "aiokafka", EVERYDAY, _python("asyncio_client.py", "everyday")),
    Scenario("java", "java", EVERYDAY, _java("everyday")),
    Scenario("java-admin", "java", "every call of the admin client that one broker can answer", _java("admin")),
    Scenario("java-transactions", "java", "consume, transform, produce in transactions; one is aborted",
             _java("transactions")),
    Scenario("java-share", "java", "a share group", _java("share")),
    Scenario("java-share-admin", "java", "a share group's offsets listed, altered, deleted",
             _java("shareAdmin", "LabGroups")),
    Scenario("java-kip848", "java", "two members of a KIP-848 group, a rebalance", _java("kip848")),
    Scenario("java-regex", "java", "a KIP-848 group that subscribes by a pattern", _java("regex", "LabGroups")),
    Scenario("java-classic", "java", "two members of a classic group, a rebalance", _java("classic")),
    Scenario("java-cooperative", "java", "static members, cooperative rebalances, members removed by the admin",
             _java("cooperative", "LabGroups")),
    Scenario("java-streams", "java", "a streams group (KIP-1071) that counts words", _java("streams", "LabGroups")),
    Scenario("sarama-1.0.0", "sarama", f"as with Kafka 1.0: {EVERYDAY}", _go("sarama", "1.0.0"), ("go",)),
    Scenario("sarama-2.3.0", "sarama", f"as with Kafka 2.3: {EVERYDAY}", _go("sarama", "2.3.0"), ("go",)),
    Scenario("franz-go", "franz-go", f"{EVERYDAY}, a transaction", _go("franz-go"), ("go",)),
    Scenario("kafkajs", "kafkajs", f"{EVERYDAY}, a transaction", _node(), ("node", "npm")),
    Scenario("plain-socket", "plain socket", "versions the broker lacks, many requests in one segment, one in drips",
             _python("plain_socket.py", "odd")),
)  # fmt: skip
