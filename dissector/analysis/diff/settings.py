"""Which setting of a client controls a field, where one is well known.

`settings.json` is made by hand. Its `sources` say what each family's names and defaults were read from; tests hold them
against the clients that are installed.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import orjson

FAMILIES: Final = (
    ("apache-kafka-java", "Java"),
    ("librdkafka", "librdkafka"),
    ("confluent-kafka", "librdkafka"),
    ("kafka-python", "kafka-python"),
    ("aiokafka", "aiokafka"),
    ("kgo", "franz-go"),
    ("sarama", "sarama"),
    ("kafkajs", "kafkajs"),
)
"""Families of clients, by what their names in ApiVersions, or their client ids, begin with."""


class Setting(NamedTuple):
    """What a family calls it, and the default where it is stated."""

    name: str
    default: str | None


def family(client: str) -> str | None:
    """The family of a client, by the name that it gives itself."""
    return next((name for start, name in FAMILIES if client.lower().startswith(start)), None)


def setting(api: str, part: str, path: str, clients: Iterable[str]) -> tuple[str, Setting] | None:
    """The family of these clients, and what it calls the setting behind a field (`path` has no labels)."""
    known = settings().get(f"{api}.{part}.{path}" if part else f"{api}.{path}", {})
    for client in clients:
        name = family(client)
        if name in known:
            return name, known[name]
    return None


@cache
def settings() -> dict[str, dict[str, Setting]]:
    """All that are known: by API, part and path, ``Fetch.request.max_wait_ms``, then by family."""
    raw = orjson.loads(files(__package__).joinpath("settings.json").read_bytes())
    return {
        field: {name: Setting(*each) if isinstance(each, list) else Setting(each, None) for name, each in row.items()}
        for field, row in raw["settings"].items()
    }
