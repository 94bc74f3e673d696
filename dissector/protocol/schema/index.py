"""The rows of an `index.json`: what is known of a message without reading its table."""

from typing import Final, NamedTuple

from dissector.protocol.schema.model import NONE, MessageSchema, SchemaError, Versions
from dissector.protocol.schema.table import MOST_VERSIONS, is_api_key, is_name

PAIRED_TYPES: Final = ("request", "response")
"""The message types that make up an API, in pairs; only their `api_key` is an API's."""


class IndexEntry(NamedTuple):
    """A message in an index."""

    name: str
    type: str
    api_key: int | None
    valid_versions: Versions
    flexible_versions: Versions
    deprecated_versions: Versions
    latest_version_unstable: bool
    aliases: tuple[str, ...]


def read_entries(raw: object, where: str) -> dict[str, IndexEntry]:
    """Return the entries of an index by name. Raises `SchemaError`."""
    try:
        assert isinstance(raw, dict)
        return {row["name"]: _entry(row) for row in raw["messages"]}
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f"{where}: is not an index of tables: {error!r}") from error


def _entry(row: dict[str, str]) -> IndexEntry:
    key = row.get("apiKey")
    if key is not None and not is_api_key(key):
        raise ValueError(f"apiKey {str(key)[:80]} of {row['name']} is not an API key")
    if not is_name(row["name"]):
        raise ValueError(f"{row['name']!r} is not a name")
    if Versions.parse(row["validVersions"]).high >= MOST_VERSIONS:
        raise ValueError(f"validVersions of {row['name']} are too many")
    return IndexEntry(
        name=row["name"],
        type=row["type"],
        api_key=None if key is None else int(key),
        valid_versions=Versions.parse(row["validVersions"]),
        flexible_versions=Versions.parse(row["flexibleVersions"]),
        deprecated_versions=Versions.parse(row.get("deprecatedVersions", str(NONE))),
        latest_version_unstable=bool(row.get("latestVersionUnstable", False)),
        aliases=tuple(row.get("aliases", ())),
    )


def index_entry(message: MessageSchema) -> IndexEntry:
    """Return the entry of a message."""
    return IndexEntry(
        name=message.name,
        type=message.type,
        api_key=message.api_key,
        valid_versions=message.valid_versions,
        flexible_versions=message.flexible_versions,
        deprecated_versions=message.deprecated_versions,
        latest_version_unstable=message.latest_version_unstable,
        aliases=message.aliases,
    )
