"""The clusters of the survey, small, on ports and in a folder of their own."""

from pathlib import Path

from tools.lab.node import NodePlan, Plan
from tools.lab.plans import LOGIN, PLAIN_USERS
from tools.lab.tools import kafka_version

LOGS = Path("/tmp/kafka-logs/survey")
PORT, OTHER_PORT = 19392, 19492
"""The listeners for clients, of one broker and of the other: what is recorded."""
ADMIN_PORT, OTHER_ADMIN_PORT = 19394, 19494
"""The listeners for the lab and between brokers."""
CONTROLLER_PORT = 19393
SASL_PORT = 19395
SLOW_PORT, DELAYED_PORT = 19396, 19397
"""A listener, and the address that it advertises, where whatever it says comes later."""
ADMIN = f"127.0.0.1:{ADMIN_PORT}"
HEAP = "-Xmx256m"

_COMMON = f"""
controller.quorum.voters=1@127.0.0.1:{CONTROLLER_PORT}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CLIENTS:PLAINTEXT,ADMIN:PLAINTEXT,SLOW:PLAINTEXT,SASL:SASL_PLAINTEXT,\
CONTROLLER:PLAINTEXT
inter.broker.listener.name=ADMIN
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.consumer.heartbeat.interval.ms=1000
group.consumer.min.heartbeat.interval.ms=500
auto.leader.rebalance.enable=false
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={LOGIN}.plain.PlainLoginModule required {PLAIN_USERS};
"""


def _node(number: int, roles: str, **listeners: tuple[int, int]) -> NodePlan:
    """Listeners have the port where they listen and the one that they advertise; 0 for one not advertised."""
    listening = ",".join(f"{name}://127.0.0.1:{port}" for name, (port, _) in listeners.items())
    advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, (_, port) in listeners.items() if port)
    properties = (
        f"process.roles={roles}\nnode.id={number}\nlisteners={listening}\nadvertised.listeners={advertised}\n"
        f"log.dirs={LOGS}/broker-{number}\n{_COMMON}"
    )
    return NodePlan(f"broker-{number}", listeners["ADMIN"][0], properties, memory=HEAP)


_FIRST = _node(
    1, "broker,controller", CLIENTS=(PORT, PORT), ADMIN=(ADMIN_PORT, ADMIN_PORT), SASL=(SASL_PORT, SASL_PORT),
    SLOW=(SLOW_PORT, DELAYED_PORT), CONTROLLER=(CONTROLLER_PORT, 0),
)  # fmt: skip
_SECOND = _node(2, "broker", CLIENTS=(OTHER_PORT, OTHER_PORT), ADMIN=(OTHER_ADMIN_PORT, OTHER_ADMIN_PORT))
ONE_BROKER = Plan(kafka_version(), (_FIRST,), logs=LOGS)
TWO_BROKERS = Plan(kafka_version(), (_FIRST, _SECOND), logs=LOGS)
