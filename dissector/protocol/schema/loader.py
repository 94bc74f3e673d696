"""The tables, as messages: read when first asked for, once.

Invariants:
  * start-up reads `tables/index.json` alone (what every message is called and which versions it has); a table is read
    when its message is first needed;
  * what is returned is shared and immutable;
  * a mistake in a table or in the index is a `SchemaError` that names the file, at load.
"""

from dataclasses import dataclass
from functools import cache

from dissector.protocol.schema.data import read_json
from dissector.protocol.schema.model import NONE, Api, Message, SchemaError, Versions
from dissector.protocol.schema.table import message_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A message as the index has it: what can be known without reading its table."""

    name: str
    type: str
    api_key: int | None
    valid_versions: Versions
    flexible_versions: Versions
    deprecated_versions: Versions
    latest_version_unstable: bool
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Index:
    """All entries by name, the APIs by key, and files of alternative layouts by message."""

    entries: dict[str, Entry]
    apis: dict[int, Api]
    alternatives: dict[str, tuple[str, ...]]


@cache
def message(name: str) -> Message:
    """The message of that name, Kafka's: ``FetchRequest``, ``RequestHeader``, ``ConsumerProtocolSubscription``."""
    if name not in _index().entries:
        raise KeyError(name)
    return _table(name)


def request(api_key: int) -> Message:
    """The request of an API. An unknown key is a KeyError."""
    return message(_index().apis[api_key].request)


def response(api_key: int) -> Message:
    """The response of an API. An unknown key is a KeyError."""
    return message(_index().apis[api_key].response)


def api(api_key: int) -> Api | None:
    """The API of that key, or None."""
    return _index().apis.get(api_key)


def api_named(name: str) -> Api | None:
    """The API of that name, or of one that a release gave it; however it is capitalised."""
    wanted = name.lower()
    return next((each for each in apis() if wanted in (n.lower() for n in (each.name, *each.aliases))), None)


def apis() -> tuple[Api, ...]:
    """All APIs, by key."""
    return tuple(_index().apis.values())


def entries() -> tuple[Entry, ...]:
    """Every message that there is a table of, by name; reads no table."""
    return tuple(_index().entries.values())


@cache
def alternatives(name: str, version: int) -> tuple[Message, ...]:
    """Other layouts that a release put on the wire under the same version of that message; mostly none.

    The number alone can't tell them apart: the layout that consumes the frame exactly is the right one. Each has the
    message's name; its `valid_versions` are the versions that it is another layout of.
    """
    tables = (_table(f"alternatives/{file}") for file in _index().alternatives.get(name, ()))
    return tuple(table for table in tables if table.valid_versions.contains(version))


def _table(name: str) -> Message:
    return message_of(read_json(f"tables/{name}.json"), f"tables/{name}.json")


@cache
def _index() -> _Index:
    raw = read_json("tables/index.json")
    try:
        assert isinstance(raw, dict)
        entries = {row["name"]: _entry(row) for row in raw["messages"]}
        others: dict[str, tuple[str, ...]] = {}
        for row in raw["alternatives"]:
            others[row["name"]] = (*others.get(row["name"], ()), row["file"])
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"tables/index.json: is not an index of tables: {error!r}") from error
    return _Index(entries, _apis(entries), others)


def _entry(row: dict[str, str]) -> Entry:
    key = row.get("apiKey")
    return Entry(
        name=row["name"],
        type=row["type"],
        api_key=None if key is None else int(key),
        valid_versions=Versions.parse(row["validVersions"]),
        flexible_versions=Versions.parse(row["flexibleVersions"]),
        deprecated_versions=Versions.parse(row.get("deprecatedVersions", str(NONE))),
        latest_version_unstable=bool(row.get("latestVersionUnstable", False)),
        aliases=tuple(row.get("aliases", ())),
    )


def _apis(entries: dict[str, Entry]) -> dict[int, Api]:
    """The APIs, in the order of their keys. A request and its response share the key and the versions."""
    requests = {e.api_key: e for e in entries.values() if e.type == "request" and e.api_key is not None}
    responses = {e.api_key: e for e in entries.values() if e.type == "response" and e.api_key is not None}
    if requests.keys() != responses.keys():
        raise SchemaError(f"tables/index.json: keys {sorted(requests.keys() ^ responses.keys())} lack one of the two")
    found: dict[int, Api] = {}
    for key, each in sorted(requests.items()):
        answer = responses[key]
        if answer.valid_versions != each.valid_versions:
            raise SchemaError(f"tables/index.json: {each.name} and {answer.name} have other versions")
        high = each.valid_versions.high
        found[key] = Api(
            key=key,
            name=each.name.removesuffix("Request"),
            versions=each.valid_versions,
            flexible_versions=each.flexible_versions,
            deprecated_versions=each.deprecated_versions,
            unstable_versions=Versions(high, high) if each.latest_version_unstable else NONE,
            request=each.name,
            response=answer.name,
            aliases=tuple(alias.removesuffix("Request") for alias in each.aliases),
        )
    return found
