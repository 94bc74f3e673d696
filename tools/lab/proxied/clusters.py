"""Clusters for clients that may only come through the proxy: one broker or three, with a listener for each way in.

Brokers advertise their own loopback addresses. Clients run in a network namespace that has neither those nor a route
to anything but the proxy.
"""

from pathlib import Path
from typing import Final

from tools.lab.node import NodePlan, Plan
from tools.lab.plans import LOGIN, PLAIN_USERS, SCRAM_USERS
from tools.lab.survey.clusters import ADMIN_PORT, CONTROLLER_PORT, HEAP
from tools.lab.tools import KEYSTORE, KEYSTORE_PASSWORD, TRUSTSTORE, kafka_version, tls_stores

LOGS: Final = Path("/tmp/kafka-logs/proxied")
STEP: Final = 100
"""Between the ports of one broker and those of the next."""
PORTS: Final = {"CLIENTS": 19392, "TLS": 19401, "MTLS": 19402, "SASL": 19403}
"""Of the first broker: in plain, over TLS, over TLS with the client's certificate, and with a login over TLS."""
BROKERS: Final = 3
_PROTOCOLS: Final = "CLIENTS:PLAINTEXT,TLS:SSL,MTLS:SSL,SASL:SASL_SSL,ADMIN:PLAINTEXT,CONTROLLER:PLAINTEXT"


def ports_of(listener: str, brokers: int) -> tuple[int, ...]:
    """The ports of a listener, broker by broker."""
    return tuple(PORTS[listener] + STEP * number for number in range(brokers))


def _node(number: int, brokers: int) -> NodePlan:
    roles = "broker,controller" if number == 0 else "broker"
    admin = ADMIN_PORT + STEP * number
    listeners = ",".join(
        f"{name}://127.0.0.1:{port + STEP * number}" for name, port in (*PORTS.items(), ("ADMIN", ADMIN_PORT))
    )
    own = f",CONTROLLER://127.0.0.1:{CONTROLLER_PORT}" if number == 0 else ""
    replicas = min(2, brokers)
    return NodePlan(
        f"broker-{number + 1}",
        admin,
        f"""
process.roles={roles}
node.id={number + 1}
listeners={listeners}{own}
advertised.listeners={listeners}
log.dirs={LOGS}/broker-{number + 1}
controller.quorum.voters=1@127.0.0.1:{CONTROLLER_PORT}
controller.listener.names=CONTROLLER
listener.security.protocol.map={_PROTOCOLS}
inter.broker.listener.name=ADMIN
num.partitions=2
offsets.topic.num.partitions=3
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.consumer.heartbeat.interval.ms=1000
group.consumer.min.heartbeat.interval.ms=500
auto.leader.rebalance.enable=false
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER
listener.name.sasl.plain.sasl.jaas.config={LOGIN}.plain.PlainLoginModule required {PLAIN_USERS};
listener.name.sasl.scram-sha-256.sasl.jaas.config={LOGIN}.scram.ScramLoginModule required;
listener.name.sasl.oauthbearer.sasl.jaas.config={LOGIN}.oauthbearer.OAuthBearerLoginModule required \
  unsecuredLoginStringClaim_sub="broker";
ssl.keystore.location={KEYSTORE}
ssl.keystore.password={KEYSTORE_PASSWORD}
ssl.truststore.location={TRUSTSTORE}
ssl.truststore.password={KEYSTORE_PASSWORD}
listener.name.mtls.ssl.client.auth=required
""",
        SCRAM_USERS,
        HEAP,
    )


def cluster_plan(brokers: int) -> Plan:
    """A cluster of so many brokers, of the newest release."""
    nodes = tuple(_node(number, brokers) for number in range(brokers))
    return Plan(kafka_version(), nodes, prepare=tls_stores, logs=LOGS)
