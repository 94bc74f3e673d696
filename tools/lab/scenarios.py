"""What the lab records: a name, a client, the command that runs it. A new recording is one line."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tools.lab.node import Plan
from tools.lab.plans import (
    ABSENT_PORT,
    AWAY_PORT,
    COMPARING,
    CONTROLLER_PORT,
    MISTAKEN,
    MTLS_PORT,
    OLD_BROKER,
    OLD_TLS_BROKER,
    ONE_BROKER,
    OTHER_PORT,
    PORT,
    QUORUM_PORTS,
    REBALANCING,
    RENEWING,
    SASL_PORT,
    SASL_TLS_PORT,
    THREE_CONTROLLERS,
    TLS_BROKER,
    TLS_PORT,
    TWO_BROKERS,
    TWO_COORDINATORS,
)
from tools.lab.tools import (
    BROKER_PEM,
    BROKER_TRUSTSTORE,
    CLIENT_KEY_LOG,
    CLIENT_KEYSTORE,
    HERE,
    KEY_BYTES,
    KEY_LOG,
    KEYSTORE_PASSWORD,
    client_python,
    go_program,
    node_folder,
    old_classpath,
    rust_program,
)

CLIENT_SECONDS = 120
SERVERS, SASL_SERVERS = f"127.0.0.1:{PORT}", f"127.0.0.1:{SASL_PORT}"
Command = Callable[[str], list[str]]
"""Takes the class path of Java's client, gives what to run; fetches and compiles it first if it must."""


class Scenario(NamedTuple):
    """One recording: `pcaps/NAME.pcapng` and what goes with it."""

    name: str
    client: str
    words: str
    command: Command
    plan: Plan = ONE_BROKER
    ports: tuple[int, ...] = (PORT,)
    needs: tuple[str, ...] = ()
    """Programs without which this one is left out; what all need, the lab refuses to start without."""
    before: Command | None = None
    """What runs before anybody records."""
    key_log: Path = KEY_LOG
    """Who logs the secrets of TLS: the broker, or the client."""
    seconds: int = CLIENT_SECONDS
    """How long its client may take."""


def _python(program: str, *arguments: str, servers: str = SERVERS) -> Command:
    return lambda _: [str(client_python()), str(HERE / "clients" / program), servers, *arguments]


def _ours(program: str, *arguments: str) -> Command:
    """A program on our own code, run by the Python that runs the lab."""
    return lambda _: [sys.executable, "-m", f"tools.lab.clients.{program}", SERVERS, *arguments]


def _java(*arguments: str, program: str = "LabClient", servers: str = SERVERS) -> Command:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return lambda classpath: ["java", "-Xmx256m", quiet, "-cp", classpath, program, servers, *arguments]


def _old_java(release: str, program: str, topic: str, *settings: str, servers: str = SERVERS) -> Command:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return lambda _: ["java", "-Xmx256m", quiet, "-cp", old_classpath(release), program, servers, topic, *settings]


def _node(*arguments: str, servers: str = SERVERS) -> Command:
    return lambda _: ["node", str(node_folder() / "client.js"), servers, *arguments]


def _go(client: str, *arguments: str, servers: str = SERVERS) -> Command:
    return lambda _: [str(go_program(client)), servers, *arguments]


def _rust(*arguments: str, servers: str = SERVERS) -> Command:
    """rustls writes the key log that the environment names."""
    return lambda _: ["env", f"SSLKEYLOGFILE={CLIENT_KEY_LOG}", str(rust_program()), servers, *arguments]


def _pretended(release: str, codec: str) -> Scenario:
    words = f"told that the broker is {release}: produce ({codec}), a transaction, consume, administer in old versions"
    return Scenario(f"kafka-python-as-{release}", "kafka-python", words, _python("pretended.py", release, codec))


def _archaic(release: str) -> Scenario:
    words = f"told that the broker is {release}: message sets in each codec, consumed"
    return Scenario(f"kafka-python-as-{release}", "kafka-python", words, _python("archaic.py", release), OLD_BROKER)


def _compared(name: str, client: str, program: Callable[..., Command]) -> tuple[Scenario, ...]:
    """Twice the same, of which a comparison should find no difference; the topics of groups are there before."""
    words = "all defaults: 100 records with keys to a topic of 2 partitions that comes to be, consumed in a group"
    return tuple(
        Scenario(f"compare-{name}-{n}", client, words, program(f"{name}-orders-{n}", f"{name}-billing-{n}", "7"),
                 COMPARING, before=program(f"{name}-warm-{n}", f"{name}-warm-{n}", "0"))
        for n in (1, 2)
    )  # fmt: skip


def _trouble(finding: str, client: str, words: str) -> Scenario:
    """What brings about a finding: `trouble-FINDING`."""
    return Scenario(f"trouble-{finding}", client, words, _ours("troubles", finding.replace("-", "_")))


MISTAKES = "mistakes"
"""The folder of recordings of wrong settings: not all that they have is Kafka."""


def _mistaken_java(name: str, words: str, port: int, *settings: str, ports: tuple[int, ...] = ()) -> Scenario:
    command = _java(*settings, program="LabMistakes", servers=f"127.0.0.1:{port}")
    return Scenario(f"{MISTAKES}/java-{name}", "java", words, command, MISTAKEN, ports or (port,))


def _mistaken_librdkafka(name: str, words: str, port: int, *settings: str) -> Scenario:
    command = _python("mistakes.py", *settings, servers=f"127.0.0.1:{port}")
    return Scenario(f"{MISTAKES}/librdkafka-{name}", "confluent-kafka", words, command, MISTAKEN, (port,))


ENCRYPTED = "tls"
"""The folder of recordings with TLS; each has its secrets."""


def _encrypted(
    name: str, client: str, words: str, command: Callable[..., Command], port: int, *settings: str,
    plan: Plan = TLS_BROKER, needs: tuple[str, ...] = (), key_log: Path = KEY_LOG,
) -> Scenario:  # fmt: skip
    words = f"{words}: create a topic, produce, consume, delete"
    return Scenario(f"{ENCRYPTED}/{name}", client, words, command(*settings, servers=f"127.0.0.1:{port}"), plan,
                    (port,), needs, key_log=key_log)  # fmt: skip


def _java_pairs(protocol: str, *more: str) -> tuple[str, ...]:
    return (
        f"security.protocol={protocol}", "ssl.truststore.type=PEM", f"ssl.truststore.location={BROKER_PEM}", *more,
    )  # fmt: skip


def _rdkafka_pairs(protocol: str, *more: str) -> tuple[str, ...]:
    return f"security.protocol={protocol}", f"ssl.ca.location={BROKER_PEM}", *more


EVERYDAY = "create a topic, produce with keys and headers in each codec, consume in a group, commit, describe, delete"

LOGINS = (
    ("plain", "log in with PLAIN, produce, consume, a delegation token from cradle to grave", "PLAIN"),
    ("scram-sha-512", "log in with SCRAM-SHA-512, stay past the session's end, log in again on the same connection",
     "SCRAM-SHA-512"),
    ("oauthbearer", "log in with an unsecured token of OAUTHBEARER, produce, consume", "OAUTHBEARER"),
    ("refused", "wrong passwords, PLAIN and SCRAM-SHA-256", "refused"),
)  # fmt: skip

_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required username=alice password=alice-secret;"
_NEW_KEYS = f"the broker changes its keys after {KEY_BYTES:,} bytes"
_OLD_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=alice password=alice-secret;"
_OLD_PAIRS = (  # its SCRAM asks for classes that Java no longer has
    "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={_OLD_LOGIN}",
    "ssl.truststore.type=PKCS12", f"ssl.truststore.location={BROKER_TRUSTSTORE}",
    f"ssl.truststore.password={KEYSTORE_PASSWORD}",
)  # fmt: skip
_TLS_JAVA, _TLS_RDKAFKA = partial(_java, program="LabTls"), partial(_python, "librdkafka.py", "encrypted")
_ENCRYPTED = (
    _encrypted("java-1.3", "java", "TLS 1.3", _TLS_JAVA, TLS_PORT, *_java_pairs("SSL")),
    _encrypted("java-1.2-mtls", "java", "TLS 1.2, the client has a certificate", _TLS_JAVA, MTLS_PORT,
               *_java_pairs("SSL", "ssl.enabled.protocols=TLSv1.2", f"ssl.keystore.location={CLIENT_KEYSTORE}",
                            "ssl.keystore.type=PKCS12", f"ssl.keystore.password={KEYSTORE_PASSWORD}")),
    _encrypted("java-1.2-scram", "java", "TLS 1.2 with CBC, SASL_SSL, SCRAM-SHA-512", _TLS_JAVA, SASL_TLS_PORT,
               *_java_pairs("SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", f"sasl.jaas.config={_LOGIN}",
                            "ssl.enabled.protocols=TLSv1.2",
                            "ssl.cipher.suites=TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384")),
    _encrypted("librdkafka-1.3-mtls", "confluent-kafka", "TLS 1.3, the client has a certificate", _TLS_RDKAFKA,
               MTLS_PORT, *_rdkafka_pairs("ssl", f"ssl.keystore.location={CLIENT_KEYSTORE}",
                                          f"ssl.keystore.password={KEYSTORE_PASSWORD}")),
    _encrypted("librdkafka-1.3-plain", "confluent-kafka", "TLS 1.3, SASL_SSL, PLAIN", _TLS_RDKAFKA, SASL_TLS_PORT,
               *_rdkafka_pairs("sasl_ssl", "sasl.mechanism=PLAIN", "sasl.username=alice",
                               "sasl.password=alice-secret")),
    _encrypted("aiokafka-1.3", "aiokafka", "TLS 1.3", partial(_python, "asyncio_client.py", "encrypted"), TLS_PORT,
               str(BROKER_PEM)),
    _encrypted("franz-go-1.3", "franz-go", "TLS 1.3", partial(_go, "franz-go"), TLS_PORT, str(BROKER_PEM),
               needs=("go",)),
    _encrypted("kafkajs-1.3", "kafkajs", "TLS 1.3", _node, TLS_PORT, str(BROKER_PEM), needs=("node", "npm")),
    _encrypted("rskafka-1.3-scram", "rskafka", "TLS 1.3, SASL_SSL, SCRAM-SHA-256, the client's key log", _rust,
               SASL_TLS_PORT, str(BROKER_PEM), "alice", "alice-secret", needs=("cargo",), key_log=CLIENT_KEY_LOG),
    _encrypted("java-1.3-resumed", "java", f"TLS 1.3, sessions are resumed, {_NEW_KEYS}", _TLS_JAVA, TLS_PORT,
               *_java_pairs("SSL"), plan=RENEWING),
    _encrypted("java-1.2-resumed", "java", "TLS 1.2, sessions are resumed", _TLS_JAVA, TLS_PORT,
               *_java_pairs("SSL", "ssl.enabled.protocols=TLSv1.2"), plan=RENEWING),
    _encrypted("librdkafka-1.3-key-update", "confluent-kafka", f"TLS 1.3, {_NEW_KEYS}", _TLS_RDKAFKA, TLS_PORT,
               *_rdkafka_pairs("ssl"), plan=RENEWING),
    Scenario(f"{ENCRYPTED}/java-0.10.2-1.2-plain", "java 0.10.2.2",
             "TLS 1.2, SASL_SSL, PLAIN: message sets in each codec, a group; acks=0",
             _old_java("0.10.2.2", "OldClient", "java-0.10.2", *_OLD_PAIRS, servers=f"127.0.0.1:{SASL_TLS_PORT}"),
             OLD_TLS_BROKER, (SASL_TLS_PORT,)),
)  # fmt: skip

REBALANCES = "groups"
"""The folder of recordings of why groups rebalance; each has what the coordinator logged of the group."""
TIMEOUT = "worker-a processes for {} between polls, max.poll.interval.ms is {}"
_REBALANCING = {
    "poll-timeout": TIMEOUT.format("4 s", "3 s"),
    "poll-timeout-45s": TIMEOUT.format("45 s", "30 s"),
    "poll-timeout-76s": TIMEOUT.format("76 s", "60 s"),
    "poll-timeout-5min": TIMEOUT.format("310 s", "5 min"),
    "poll-timeout-kip848": f"KIP-848: {TIMEOUT.format('6 s', '4 s')}",
    "crash": "worker-c is killed",
    "crash-kip848": "KIP-848: worker-c is killed",
    "frozen": "the process of worker-c is stopped for 15 s, longer than session.timeout.ms",
    "frozen-kip848": "KIP-848: the process of worker-c is stopped for 15 s, longer than its session",
    "rolling-restart": "three members restart one after the other",
    "rolling-restart-static": "three static members restart one after the other",
    "static-restart-too-slow": "a static member is away for 14 s, longer than session.timeout.ms",
    "deployment": "from three members to six",
    "deployment-kip848": "KIP-848: from three members to six",
    "deployment-cooperative": "cooperative: from three members to six",
    "subscription": "worker-b subscribes to another topic",
    "partitions": "a topic is given more partitions",
    "enforced": "worker-b asks for a rebalance: enforceRebalance",
    "removed": "an admin client removes a static member",
    "same-instance": "two members with one group.instance.id: the older is fenced",
    "same-instance-kip848": "KIP-848: two members with one group.instance.id: the newer is refused",
    "protocols": "a member without an assignor in common is refused",
}


def _rebalancing() -> Iterator[Scenario]:
    """The members are Java's consumers; one broker serves all of these."""
    clean = _java("clean", program="LabRebalances")
    for name, words in _REBALANCING.items():
        command = _java(name, program="LabRebalances")
        yield Scenario(f"{REBALANCES}/{name}", "java", words, command, REBALANCING, before=clean, seconds=1_200)
    yield Scenario(f"{REBALANCES}/fenced-kip848", "confluent-kafka",
                   "KIP-848: worker-c, a plain socket, goes on from an older epoch of its own and is fenced",
                   _ours("fenced_member"), REBALANCING, before=clean)  # fmt: skip
    yield Scenario(f"{REBALANCES}/coordinator", "java", "another broker becomes the coordinator",
                   _java("coordinator", program="LabRebalances"), TWO_COORDINATORS, (PORT, OTHER_PORT))  # fmt: skip


CARRIED = "records"
"""The folder of recordings of what is in records; the schemas are beside them."""

SCENARIOS = (
    Scenario("librdkafka", "confluent-kafka", EVERYDAY, _python("librdkafka.py", "everyday")),
    Scenario("librdkafka-acks0", "confluent-kafka", "produce with acks=0", _python("librdkafka.py", "acks0")),
    Scenario("librdkafka-pipelined", "confluent-kafka", "many produce requests in flight",
             _python("librdkafka.py", "pipelined")),
    Scenario("librdkafka-kip848", "confluent-kafka", "consume with the KIP-848 protocol",
             _python("librdkafka.py", "consumer_protocol")),
    Scenario("librdkafka-transactions", "confluent-kafka", "commit, abort, commit",
             _python("librdkafka.py", "transactions")),
    Scenario(f"{CARRIED}/orders", "confluent-kafka",
             "keys and values as serializers write them: JSON, Avro, Protobuf, schema ids, Connect, Debezium, headers",
             _python("schemas.py")),
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
             _java("shareAdmin", program="LabGroups")),
    Scenario("java-kip848", "java", "two members of a KIP-848 group, a rebalance", _java("kip848")),
    Scenario("java-regex", "java", "a KIP-848 group that subscribes by a pattern", _java("regex", program="LabGroups")),
    Scenario("java-classic", "java", "two members of a classic group, a rebalance", _java("classic")),
    Scenario("java-cooperative", "java", "static members, cooperative rebalances, members removed by the admin",
             _java("cooperative", program="LabGroups")),
    Scenario("java-streams", "java", "a streams group (KIP-1071) that counts words",
             _java("streams", program="LabGroups")),
    Scenario("sarama-1.0.0", "sarama", f"as with Kafka 1.0: {EVERYDAY}", _go("sarama", "1.0.0"), needs=("go",)),
    Scenario("sarama-2.3.0", "sarama", f"as with Kafka 2.3: {EVERYDAY}", _go("sarama", "2.3.0"), needs=("go",)),
    Scenario("franz-go", "franz-go", f"{EVERYDAY}, a transaction", _go("franz-go"), needs=("go",)),
    Scenario("kafkajs", "kafkajs", f"{EVERYDAY}, a transaction", _node(), needs=("node", "npm")),
    *(Scenario(f"java-sasl-{name}", "java", words, _java(*arguments, program="LabLogin", servers=SASL_SERVERS),
               ports=(SASL_PORT,)) for name, words, *arguments in LOGINS),
    Scenario("librdkafka-sasl-scram-sha-256", "confluent-kafka", "log in with SCRAM-SHA-256, produce, consume",
             _python("librdkafka.py", "login", servers=SASL_SERVERS), ports=(SASL_PORT,)),
    Scenario("plain-socket-sasl-v0", "plain socket", "SaslHandshake v0, tokens without headers: PLAIN, SCRAM-SHA-256",
             _python("bare_tokens.py", "bare", servers=SASL_SERVERS), ports=(SASL_PORT,)),
    Scenario("encoder", "kdissect", "our own encoder: from ApiVersions to LeaveGroup in every version that both have",
             _ours("encoder")),
    _trouble("tiny-batches", "confluent-kafka", "flush after each record"),
    _trouble("uncompressed-batches", "confluent-kafka", "batches of 12,000 bytes without a codec"),
    _trouble("throttled", "confluent-kafka", "a quota of 1,000 bytes a second, and more sent"),
    _trouble("error-storm", "kdissect", "a producer whose topic is gone"),
    _trouble("metadata-storm", "confluent-kafka", "ask for a topic that is not there, again and again"),
    _trouble("rebalance-loop", "confluent-kafka", "members of a group that come and go"),
    _trouble("fetch-session-error", "kdissect", "fetch in a session that the broker never had"),
    _trouble("sequence-gap", "kdissect", "an idempotent producer that leaves out numbers"),
    _trouble("retried-batch", "kdissect", "an idempotent producer that sends a batch twice"),
    _trouble("consumer-lag", "kdissect", "a consumer slower than the producer"),
    _trouble("slow", "kdissect", "many quick answers, and a slow one"),
    _trouble("version-not-offered", "kdissect", "a version that the broker does not offer"),
    _trouble("oversized-request", "kdissect", "a size prefix beyond socket.request.max.bytes"),
    _trouble("closed-in-flight", "kdissect", "a client that closes while topics are made for it"),
    _trouble("duplicate-correlation-id", "kdissect", "two requests in flight with one correlation id"),
    _trouble("everyday-error-again", "kdissect", "a member that never takes the id that it is given"),
    _trouble("near-loss", "kdissect", "an answer that the client's kernel drops for a tenth of a second"),
    _trouble("unreadable-request", "kdissect", "a tagged field one version too early"),
    _trouble("suspect-version", "kdissect", "a version that the broker does not have, of a client that does not ask"),
    _trouble("stuck-fetch", "kdissect", "a consumer that does not get past a batch"),
    Scenario("plain-socket", "plain socket", "versions the broker lacks, many requests in one segment, one in drips",
             _python("plain_socket.py", "odd")),
    *_compared("java", "java", partial(_java, program="LabCompare")),
    *_compared("librdkafka", "confluent-kafka", partial(_python, "librdkafka.py", "compare")),
    *_compared("kafka-python", "kafka-python", partial(_python, "pure_python.py", "compare")),
    *_compared("aiokafka", "aiokafka", partial(_python, "asyncio_client.py", "compare")),
    Scenario("java-0.10.2", "java 0.10.2.2", "message sets in each codec, a group; acks=0",
             _old_java("0.10.2.2", "OldClient", "java-0.10.2"), OLD_BROKER),
    Scenario("java-0.11.0-admin", "java 0.11.0.3", "the first admin client, a transaction with headers",
             _old_java("0.11.0.3", "OldAdmin", "java-0.11.0"), OLD_BROKER),
    *(_archaic(release) for release in ("0.8.2", "0.9", "0.10")),
    Scenario("plain-socket-message-sets", "plain socket", "message sets, magic 0 and 1, each codec, fetched as either",
             _python("message_sets.py", "everything"), OLD_BROKER),
    Scenario("plain-socket-old-versions", "plain socket", "versions gone from Kafka 4 that no client at hand sends",
             _python("old_versions.py", "everything"), OLD_BROKER),
    Scenario("kafka-python-as-0.10-sasl", "kafka-python", "told that the broker is 0.10: tokens without headers",
             _python("archaic.py", "0.10", "login", servers=SASL_SERVERS), OLD_BROKER, (SASL_PORT,)),
    Scenario("kraft-quorum", "java", "three controllers and a broker, from start to end: joining, voting, forwarding",
             _java("quorum", program="LabCluster"), THREE_CONTROLLERS, (*QUORUM_PORTS, PORT)),
    Scenario("two-brokers", "java", "two brokers, start to end: replicas, a transaction across them, a leader moved",
             _java("brokers", program="LabCluster"), TWO_BROKERS, (PORT, OTHER_PORT, QUORUM_PORTS[0])),
    _mistaken_java("tls-to-plain", "security.protocol=SSL on a PLAINTEXT listener", PORT, "security.protocol=SSL"),
    _mistaken_java("plain-to-tls", "security.protocol=PLAINTEXT on an SSL listener", TLS_PORT),
    _mistaken_java("untrusted", "a certificate that no CA of the client signed", TLS_PORT, "security.protocol=SSL"),
    _mistaken_java("without-login", "security.protocol=PLAINTEXT on a SASL_PLAINTEXT listener", SASL_PORT),
    _mistaken_java("controller", "the port of a controller", CONTROLLER_PORT),
    _mistaken_java("advertised", "the broker advertises an address where nothing listens", AWAY_PORT,
                   ports=(AWAY_PORT, ABSENT_PORT)),
    _mistaken_librdkafka("tls-to-plain", "security.protocol=ssl on a PLAINTEXT listener", PORT,
                         "security.protocol=ssl"),
    _mistaken_librdkafka("plain-to-tls", "security.protocol=plaintext on an SSL listener", TLS_PORT),
    _mistaken_librdkafka("untrusted", "a certificate that no CA of the client signed", TLS_PORT,
                         "security.protocol=ssl"),
    _mistaken_librdkafka("without-login", "security.protocol=plaintext on a SASL_PLAINTEXT listener", SASL_PORT),
    _mistaken_librdkafka("refused-login", "a wrong password, PLAIN", SASL_PORT, "security.protocol=sasl_plaintext",
                         "sasl.mechanism=PLAIN", "sasl.username=alice", "sasl.password=not-her-secret"),
    _mistaken_librdkafka("nothing-listens", "a port where nothing listens", ABSENT_PORT),
    _mistaken_librdkafka("old-version", "versions of Kafka 0.9, which Kafka 4 took out", PORT,
                         "api.version.request=false", "broker.version.fallback=0.9.0"),
    *_ENCRYPTED,
    *_rebalancing(),
    Scenario(f"{MISTAKES}/curl", "curl", "HTTP on a PLAINTEXT listener",
             lambda _: ["sh", "-c", f"! curl -s -m 3 http://{SERVERS}/brokers"], MISTAKEN, needs=("curl",)),
)  # fmt: skip

EVENTFUL: tuple[Command, ...] = (
    _python("librdkafka.py", "codecs"),
    _python("librdkafka.py", "transactions"),
    _java("transactions"),
    _java("classic"),
    _java("kip848"),
    _java("share"),
    _java("streams", program="LabGroups"),
    _java("admin"),
)
"""What a broker should have seen when its files are kept."""
