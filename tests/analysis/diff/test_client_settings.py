"""The table of settings: its places exist in the schema, its names in the clients."""

import ctypes
import inspect
from collections.abc import Callable
from pathlib import Path

import aiokafka
import pytest

from dissector.analysis.diff.client_settings import setting, settings
from dissector.analysis.diff.field_schemas import field_at
from dissector.exchange.client_families import family
from dissector.protocol.schema.loader import api_named
from tests.cases import cases

GOLDEN = Path(__file__).parents[2] / "golden"
OTHER_PLACES = ("interval", "linger", "on_leaving", "records_per_batch", "retry_backoff")
UNKNOWN = -2
"""RD_KAFKA_CONF_UNKNOWN."""


def names(client: str) -> set[str]:
    return {row[client] for row in settings().values() if client in row}


@cases("place", settings())
def test_every_place_is_an_api_and_a_field_of_its_schema(place: str) -> None:
    api, *path = place.partition(":")[0].split(".")
    found = api_named(api)
    assert found is not None
    assert found.name == api
    if path and path[0] not in OTHER_PLACES:
        part, *steps = path
        steps = steps[: steps.index("records") + 1] if "records" in steps else steps
        assert field_at(f"{api}{part.capitalize()}", tuple(steps)) is not None


def librdkafka() -> Callable[[str], bool]:
    """Return a check whether the installed librdkafka has a property."""
    package = pytest.importorskip("confluent_kafka", reason="NOT TESTED against librdkafka: it can't be imported")
    folder = Path(package.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(folder.glob("librdkafka*"))
    if not found:
        pytest.skip("NOT TESTED against librdkafka: the installed confluent-kafka bundles none")
    library = ctypes.CDLL(str(found[0]))
    confs = []
    for kind in ("", "topic_"):
        new, put = getattr(library, f"rd_kafka_{kind}conf_new"), getattr(library, f"rd_kafka_{kind}conf_set")
        new.restype = ctypes.c_void_p
        put.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        confs.append((put, new()))

    def has(name: str) -> bool:
        room = ctypes.create_string_buffer(1_000)
        return any(put(conf, name.encode(), b"1", room, len(room)) != UNKNOWN for put, conf in confs)

    return has


def test_librdkafka_has_each_property() -> None:
    has = librdkafka()
    assert not has("fetch.wait.max")
    assert [name for name in names("librdkafka") if not has(name)] == []


@pytest.mark.filterwarnings("ignore:.* is deprecated. Use files:DeprecationWarning")
def test_kafka_python_has_each_parameter() -> None:
    import kafka  # imported here because the import warns about a deprecated API

    assert names("kafka-python") <= {*kafka.KafkaConsumer.DEFAULT_CONFIG, *kafka.KafkaProducer.DEFAULT_CONFIG}


def test_aiokafka_has_each_parameter() -> None:
    clients = (aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer)
    assert names("aiokafka") <= {name for each in clients for name in inspect.signature(each.__init__).parameters}


def test_java_has_each_property() -> None:
    """`make schemas` lists them from Apache's newest jar."""
    assert names("Java") <= set((GOLDEN / "java-settings.txt").read_text().split())


def test_a_family_is_found_by_the_name_of_the_software() -> None:
    assert family("apache-kafka-java 4.3.1") == "Java"
    assert family("confluent-kafka-python 2.16.1-rdkafka-2.16.0") == "librdkafka"
    assert family("aiokafka-producer-1") == "aiokafka"
    assert family("somebody's own") is None
    assert family("billing@host (github.com/segmentio/kafka-go)") == "kafka-go"
    assert family("platformatic-kafka 1.35.0") == "platformatic"
    assert setting("Fetch.request.max_wait_ms", ["kgo unknown"]) == ("franz-go", "FetchMaxWait")
    assert setting("Fetch.request.max_wait_ms", ["somebody's own"]) is None


def test_a_field_that_no_option_sets_for_sure_has_no_setting() -> None:
    """A Writer's AllowAutoTopicCreation is not in what kafka-go's Reader and Transport send."""
    client = "billing@host (github.com/segmentio/kafka-go)"
    assert setting("Metadata.request.allow_auto_topic_creation", [client]) is None
    assert setting("Produce.request.acks", ["rskafka 0.6.0"]) is None
