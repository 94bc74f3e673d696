"""Loads the tables as messages, each once and when first needed, and overlays releases that a user imported.

Invariants:
  * start-up reads only `tables/index.json` (names and versions of all messages); a table is read when its message is
    first needed;
  * returned objects are shared and immutable;
  * a mistake in a table or in the index is a `SchemaError` that names the file, at load;
  * an import adds APIs, messages and versions, and never changes those of the tables (`overlay`).
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from dissector.protocol.schema.imported import imported_releases
from dissector.protocol.schema.index import PAIRED_TYPES, IndexEntry, index_entry, read_entries
from dissector.protocol.schema.model import NONE, Api, MessageSchema, SchemaError, Versions
from dissector.protocol.schema.overlay import ImportedRelease, Overlay, overlay
from dissector.protocol.schema.resources import read_json, read_text
from dissector.protocol.schema.table import message_of


class _Index(NamedTuple):
    """All entries by name, APIs by key, files of alternative layouts by message; shipped entries, and the overlay."""

    entries: dict[str, IndexEntry]
    apis: dict[int, Api]
    alternatives: dict[str, tuple[str, ...]]
    shipped: dict[str, IndexEntry]
    overlay: Overlay


@cache
def message(name: str) -> MessageSchema:
    """Return a message by Kafka's name: ``FetchRequest``, ``RequestHeader``, ``ConsumerProtocolSubscription``.

    It has all versions; `schema` has the fields of an imported version. Raises KeyError.
    """
    index = _index()
    if name not in index.entries:
        raise KeyError(name)
    found = index.overlay.messages.get(name) or _table(name)
    more = index.overlay.releases.get(name)
    return replace(found, releases={**found.releases, **more}) if more else found


@cache
def schema(name: str, version: int) -> MessageSchema:
    """Return the message from the source that has the version: the tables, or an imported release."""
    index = _index()
    entry = index.shipped.get(name)
    if entry is not None and entry.valid_versions.contains(version):
        return message(name)
    return index.overlay.source(name, version) or message(name)


def may_have_field(name: str, field_name: str) -> bool:
    """Return whether a message may have fields of that snake_name. It searches the text of the message's table, which
    is many times quicker than reading it. Raises KeyError for an unknown message."""
    index = _index()
    if name not in index.entries:
        raise KeyError(name)
    return name in index.overlay.messages or f'"{field_name.replace("_", "")}"' in _words(name)


@cache
def _words(name: str) -> str:
    """The text of a table in lower case, without the underscores that some names have."""
    return read_text(f"tables/{name}.json").lower().replace("_", "")


def request(api_key: int) -> MessageSchema:
    """Return the request of an API. Raises KeyError for an unknown key."""
    return message(_index().apis[api_key].request)


def response(api_key: int) -> MessageSchema:
    """Return the response of an API. Raises KeyError for an unknown key."""
    return message(_index().apis[api_key].response)


def api(api_key: int) -> Api | None:
    """Return the API of that key, or None."""
    return _index().apis.get(api_key)


def api_name(api_key: int) -> str:
    """The API's name, or its number where it is not known."""
    known = api(api_key)
    return known.name if known else f"API {api_key}"


def api_named(name: str) -> Api | None:
    """Return the API of that name or alias, whatever its case, or None."""
    return _apis_by_name().get(name.lower())


@cache
def _apis_by_name() -> dict[str, Api]:
    """APIs by names and aliases, in lower case; the first of those that share one."""
    return {name.lower(): each for each in reversed(apis()) for name in (each.name, *each.aliases)}


def apis() -> tuple[Api, ...]:
    """Return all APIs, in the order of keys."""
    return tuple(_index().apis.values())


def entries() -> tuple[IndexEntry, ...]:
    """Return the index entries of all messages, in the order of names. Reads no table."""
    return tuple(_index().entries.values())


@cache
def alternatives(name: str, version: int) -> tuple[MessageSchema, ...]:
    """Return other layouts that a release used for the same version of a message; mostly none.

    The version does not distinguish them: the layout that consumes the frame exactly is the right one. Each has the
    message's name; its `valid_versions` are the versions for which it is another layout.
    """
    tables = (_table(f"alternatives/{file}") for file in _index().alternatives.get(name, ()))
    return tuple(table for table in tables if table.valid_versions.contains(version))


def _table(name: str) -> MessageSchema:
    return message_of(read_json(f"tables/{name}.json"), f"tables/{name}.json")


@cache
def _index() -> _Index:
    return _assembled(imported_releases())


def try_import(release: ImportedRelease) -> Overlay:
    """Return the overlay as it would be with this release imported, too. Raises `SchemaError`."""
    return _assembled([*(each for each in imported_releases() if each.label != release.label), release]).overlay


def _assembled(releases: Iterable[ImportedRelease]) -> _Index:
    raw = read_json("tables/index.json")
    shipped = read_entries(raw, "tables/index.json")
    others: dict[str, tuple[str, ...]] = {}
    try:
        assert isinstance(raw, dict)
        for row in raw["alternatives"]:
            others[row["name"]] = (*others.get(row["name"], ()), row["file"])
    except (AssertionError, KeyError, TypeError) as error:
        raise SchemaError(f"tables/index.json: is not an index of tables: {error!r}") from error
    overlaid = overlay(shipped, _table, releases)
    entries = shipped | {name: index_entry(message) for name, message in overlaid.messages.items()}
    return _Index(dict(sorted(entries.items())), _apis(entries), others, shipped, overlaid)


def _apis(entries: dict[str, IndexEntry]) -> dict[int, Api]:
    """Return the APIs in the order of keys. A request and its response have the same key and versions."""
    requests, responses = (
        {e.api_key: e for e in entries.values() if e.type == kind and e.api_key is not None} for kind in PAIRED_TYPES
    )
    if requests.keys() != responses.keys():
        raise SchemaError(f"API keys {sorted(requests.keys() ^ responses.keys())} lack a request or a response")
    found: dict[int, Api] = {}
    for key, each in sorted(requests.items()):
        response = responses[key]
        if response.valid_versions != each.valid_versions:
            raise SchemaError(f"{each.name} and {response.name} have different versions")
        high = each.valid_versions.high
        found[key] = Api(
            key=key,
            name=each.name.removesuffix("Request"),
            versions=each.valid_versions,
            flexible_versions=each.flexible_versions,
            deprecated_versions=each.deprecated_versions,
            unstable_versions=Versions(high, high) if each.latest_version_unstable else NONE,
            request=each.name,
            response=response.name,
            aliases=tuple(alias.removesuffix("Request") for alias in each.aliases),
        )
    return found
