"""The clusters that the lab runs: which processes, with which settings."""

from tools.lab.node import LOGS, NodePlan, Plan
from tools.lab.tools import (
    KEY_LIMITS,
    KEY_LOG,
    KEY_LOGGER,
    KEYSTORE,
    KEYSTORE_PASSWORD,
    TRUSTSTORE,
    kafka_version,
    keystore,
    tls_stores,
)

PORT = 9092
SASL_PORT = 9094
CONTROLLER_PORT = 9093
COMMON = """
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
ALONE = f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{CONTROLLER_PORT}
controller.listener.names=CONTROLLER
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
GROUPS = """
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.consumer.heartbeat.interval.ms=1000
group.consumer.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=1000
group.share.min.heartbeat.interval.ms=500
"""
LOGIN = "org.apache.kafka.common.security"
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
"""Made up, for loopback alone; the clients have them too. None may be the one whom an admin of the lab alters."""
REAUTHENTICATION_MS = 2000
PLAIN_USERS = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
SASL = f"""
listeners=PLAINTEXT://127.0.0.1:{PORT},SASL://127.0.0.1:{SASL_PORT},CONTROLLER://127.0.0.1:{CONTROLLER_PORT}
advertised.listeners=PLAINTEXT://127.0.0.1:{PORT},SASL://127.0.0.1:{SASL_PORT}
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.sasl.plain.sasl.jaas.config={LOGIN}.plain.PlainLoginModule required {PLAIN_USERS};
listener.name.sasl.scram-sha-256.sasl.jaas.config={LOGIN}.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config={LOGIN}.scram.ScramLoginModule required;
listener.name.sasl.oauthbearer.sasl.jaas.config={LOGIN}.oauthbearer.OAuthBearerLoginModule required \
  unsecuredLoginStringClaim_sub="broker";
delegation.token.secret.key=token-secret
listener.name.sasl.scram-sha-512.connections.max.reauth.ms={REAUTHENTICATION_MS}
"""
SCRAM_USERS = tuple(
    word
    for name, password in USERS.items()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    for word in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
)

PROPERTIES = f"log.dirs={LOGS}\n{COMMON}{ALONE}{GROUPS}{SASL}"

ONE_BROKER = Plan(kafka_version(), (NodePlan("broker", PORT, PROPERTIES, SCRAM_USERS, "-Xmx1g"),))

TLS_PORT = 9096
AWAY_PORT = 9098
ABSENT_PORT = 9099
"""Where nothing listens."""
TLS = f"""
listeners=PLAINTEXT://127.0.0.1:{PORT},SASL://127.0.0.1:{SASL_PORT},TLS://127.0.0.1:{TLS_PORT},\
AWAY://127.0.0.1:{AWAY_PORT},CONTROLLER://127.0.0.1:{CONTROLLER_PORT}
advertised.listeners=PLAINTEXT://127.0.0.1:{PORT},SASL://127.0.0.1:{SASL_PORT},TLS://127.0.0.1:{TLS_PORT},\
AWAY://127.0.0.1:{ABSENT_PORT}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,AWAY:PLAINTEXT,CONTROLLER:PLAINTEXT
ssl.keystore.location={KEYSTORE}
ssl.keystore.password={KEYSTORE_PASSWORD}
ssl.enabled.protocols=TLSv1.2
"""
"""TLS 1.2, as 1.3 encrypts the alerts of clients; and a listener whose advertised address nobody listens on."""
MISTAKEN = Plan(
    kafka_version(), (NodePlan("broker", PORT, PROPERTIES + TLS, SCRAM_USERS, "-Xmx512m"),), prepare=keystore
)
"""For clients with wrong settings."""

MTLS_PORT, SASL_TLS_PORT = 9097, 9100
ENCRYPTED = f"""
{SASL.strip()}
listeners=PLAINTEXT://127.0.0.1:{PORT},TLS://127.0.0.1:{TLS_PORT},MTLS://127.0.0.1:{MTLS_PORT},\
SASL://127.0.0.1:{SASL_TLS_PORT},CONTROLLER://127.0.0.1:{CONTROLLER_PORT}
advertised.listeners=PLAINTEXT://127.0.0.1:{PORT},TLS://127.0.0.1:{TLS_PORT},MTLS://127.0.0.1:{MTLS_PORT},\
SASL://127.0.0.1:{SASL_TLS_PORT}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,MTLS:SSL,SASL:SASL_SSL,CONTROLLER:PLAINTEXT
ssl.keystore.location={KEYSTORE}
ssl.keystore.password={KEYSTORE_PASSWORD}
ssl.truststore.location={TRUSTSTORE}
ssl.truststore.password={KEYSTORE_PASSWORD}
ssl.enabled.protocols=TLSv1.2,TLSv1.3
listener.name.mtls.ssl.client.auth=required
"""
"""Later lines count where a setting stands twice."""
TLS_BROKER = Plan(
    kafka_version(),
    (NodePlan("broker", PORT, f"log.dirs={LOGS}\n{COMMON}{ALONE}{GROUPS}{ENCRYPTED}", SCRAM_USERS, "-Xmx1g",
              f"{KEY_LOGGER}={KEY_LOG}"),),
    prepare=tls_stores,
)  # fmt: skip
"""Logs the secrets of all TLS connections."""
RENEWING = Plan(
    kafka_version(),
    (NodePlan("broker", PORT, f"log.dirs={LOGS}\n{COMMON}{ALONE}{GROUPS}{ENCRYPTED}num.network.threads=1\n",
              SCRAM_USERS, "-Xmx1g", f"{KEY_LOGGER}={KEY_LOG}", (f"-Djava.security.properties={KEY_LIMITS}",)),),
    prepare=tls_stores,
)  # fmt: skip
"""Changes its keys soon, and resumes sessions: each network thread has sessions of its own, so there is but one."""

COMPARING = Plan(kafka_version(), (NodePlan("broker", PORT, f"{PROPERTIES}num.partitions=2\n", SCRAM_USERS, "-Xmx1g"),))
"""Where topics that clients make by writing to them have two partitions."""

SOON_REMOVED = """
group.min.session.timeout.ms=2000
group.consumer.min.session.timeout.ms=2000
group.consumer.session.timeout.ms=8000
"""
REBALANCING = Plan(kafka_version(), (NodePlan("broker", PORT, f"{PROPERTIES}{SOON_REMOVED}", SCRAM_USERS),))
"""Members of new groups, which can't choose, are removed after 8 s without a heartbeat in place of 45 s."""

SNAPSHOTS = "metadata.log.max.record.bytes.between.snapshots=500\n"
"""So that who joins a quorum later is sent one, and that there is one to keep."""
TOGETHER = """
offsets.topic.num.partitions=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.num.partitions=1
"""
KEEPER = Plan(kafka_version(), (NodePlan("broker", PORT, PROPERTIES + TOGETHER + SNAPSHOTS, SCRAM_USERS, "-Xmx1g"),))
"""What it knows of groups and of transactions is in one partition each: the later of two lines counts."""

OLD_BROKER = Plan(
    "3.9.2",
    (NodePlan("broker", PORT, f"log.dirs={LOGS}\n{COMMON}{ALONE}{SASL}", SCRAM_USERS, "-Xmx1g"),),
)
"""The last release with the versions and the message sets that Kafka 4 took out."""
OLD_TLS_BROKER = Plan(
    "3.9.2",
    (NodePlan("broker", PORT, f"log.dirs={LOGS}\n{COMMON}{ALONE}{ENCRYPTED}", SCRAM_USERS, "-Xmx1g",
              f"{KEY_LOGGER}={KEY_LOG}"),),
    prepare=tls_stores,
)  # fmt: skip

QUORUM_PORTS = (19093, 19094, 19095)
QUORUM = f"""
controller.quorum.bootstrap.servers={",".join(f"127.0.0.1:{port}" for port in QUORUM_PORTS)}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
"""


def _controller(number: int) -> NodePlan:
    """The first is a quorum by itself; the second asks to join, the third is added by a command."""
    port = QUORUM_PORTS[number - 1]
    name = f"controller-{number}"
    properties = _member(number, "controller", f"CONTROLLER://127.0.0.1:{port}", f"{LOGS}/{name}")
    properties += f"{SNAPSHOTS}controller.quorum.auto.join.enable={str(number == 2).lower()}\n"
    formatting = ("--standalone",) if number == 1 else ("--no-initial-controllers",)
    return NodePlan(name, port, properties, formatting, "-Xmx256m")


def _member(number: int, roles: str, listeners: str, log_dirs: str) -> str:
    return f"""
process.roles={roles}
node.id={number}
listeners={listeners}
log.dirs={log_dirs}
{QUORUM}{COMMON}"""


THREE_CONTROLLERS = Plan(
    kafka_version(),
    (
        *(_controller(number) for number in (1, 2, 3)),
        NodePlan("broker-4", PORT, _member(4, "broker", f"PLAINTEXT://127.0.0.1:{PORT}", f"{LOGS}/broker-4")),
    ),
    ("broker-4", "controller-1", "controller-2", "controller-3"),
    whole=True,
)
"""The leader is the first controller to go, so that the others must elect another."""

OTHER_PORT = 9095
REPLICATED = """
offsets.topic.replication.factor=2
transaction.state.log.replication.factor=2
transaction.state.log.min.isr=1
"""
FIRST = _member(
    1, "broker,controller", f"PLAINTEXT://127.0.0.1:{PORT},CONTROLLER://127.0.0.1:{QUORUM_PORTS[0]}", f"{LOGS}/broker-1"
)
SECOND = _member(2, "broker", f"PLAINTEXT://127.0.0.1:{OTHER_PORT}", f"{LOGS}/broker-2a,{LOGS}/broker-2b")
"""With two folders, so that it tells the controller which replica is in which."""
TWO_BROKERS = Plan(
    kafka_version(),
    (
        NodePlan("broker-1", PORT, FIRST + REPLICATED, ("--standalone",)),
        NodePlan("broker-2", OTHER_PORT, SECOND + REPLICATED),
    ),
    ("broker-1", "broker-2"),
    whole=True,
)
"""The controller goes first: else its last answer to the other broker is cut by that one's going."""
TWO_COORDINATORS = Plan(kafka_version(), TWO_BROKERS.nodes)
"""Groups may move from one broker to the other."""
