"""Earlier releases of the survey's clients, and what is built on Java's: entries as in `clients.py`.

Each names the release that one upgrades to, so that `upgrades.py` can put the two side by side.
"""

from functools import partial

from tools.lab.survey.clients import (
    CLIENTS,
    NEXT_GENERATION,
    NO_IDEMPOTENCE,
    NO_KIP848,
    NO_TRANSACTIONS,
    SurveyedClient,
    framework_program,
    go_client,
    java_program,
    python_program,
)
from tools.lab.survey.scenarios import PLAIN
from tools.lab.tools import kafka_version

_NO_KIP848 = {NEXT_GENERATION: NO_KIP848}
_NO_PRODUCER_IDS = {"transactional": NO_TRANSACTIONS, "idempotent": NO_IDEMPOTENCE}
_NO_ACKS_ALL = {"changed": "its task disables idempotence, which this release lacks"}
_FRAMEWORKS = (("streams", "Streams"), ("connect", "Connect"), ("mirror-maker", "MirrorMaker"))
_FRAMEWORK_RELEASES = ("3.4.1", kafka_version())


def _java(release: str) -> SurveyedClient:
    short = release.rpartition(".")[0]
    return SurveyedClient(f"java-{short}", f"Java {short}", f"java {release}", partial(java_program, release),
                          _NO_KIP848, newer="java-4.3")  # fmt: skip


def _librdkafka(package_release: str, python_release: str = "") -> SurveyedClient:
    """confluent-kafka's releases have the numbers of librdkafka's."""
    short, package = package_release.rpartition(".")[0], f"confluent-kafka=={package_release}"
    return SurveyedClient(f"librdkafka-{short}", f"librdkafka {short}", package,
                          partial(python_program, "librdkafka", package, python_release), _NO_KIP848,
                          newer="librdkafka-2.16")  # fmt: skip


def _framework(name: str, title: str, release: str) -> SurveyedClient:
    short = release.rpartition(".")[0]
    newest = release == kafka_version()
    return SurveyedClient(f"{name}-{short}", f"{title} {short}", f"java {release}",
                          partial(framework_program, name, release), only=(PLAIN,),
                          newer="" if newest else f"{name}-{kafka_version().rpartition('.')[0]}")  # fmt: skip


EARLIER = (
    _java("2.8.2"),
    _java("3.4.1"),
    _librdkafka("1.9.2", "3.10"),
    _librdkafka("2.6.1"),
    SurveyedClient("kafka-python-2.0", "kafka-python 2.0", "kafka-python==2.0.2",
                   partial(python_program, "kafka_python", "kafka-python==2.0.2"),
                   _NO_KIP848 | _NO_PRODUCER_IDS | _NO_ACKS_ALL, newer="kafka-python"),
    SurveyedClient("aiokafka-0.8", "aiokafka 0.8", "aiokafka==0.8.1",
                   partial(python_program, "asyncio_client", "aiokafka==0.8.1 kafka-python==2.0.2"), _NO_KIP848,
                   newer="aiokafka"),
    SurveyedClient("sarama-1.38", "sarama 1.38", "sarama 1.38.1", partial(go_client, "sarama", "1.38.1"),
                   _NO_KIP848 | {"compression": "has no zstd in the version of the protocol that it uses by default"},
                   "go", newer="sarama"),
    SurveyedClient("franz-go-1.15", "franz-go 1.15", "franz-go 1.15.4", partial(go_client, "franz-go", "1.15.4"),
                   _NO_KIP848, "go", newer="franz-go"),
    SurveyedClient("kafka-go-0.4.40", "kafka-go 0.4.40", "kafka-go 0.4.40", partial(go_client, "kafka-go", "0.4.40"),
                   _NO_KIP848 | _NO_PRODUCER_IDS, "go", newer="kafka-go"),
    *(_framework(name, title, release) for name, title in _FRAMEWORKS for release in _FRAMEWORK_RELEASES),
)  # fmt: skip
EARLIER_SCENARIOS = {PLAIN: 2, "rebalanced": 1, "group-classic": 1, "transactional": 1}
"""In which the earlier releases are recorded, and how often."""
EVERY_CLIENT = (*CLIENTS, *EARLIER)
