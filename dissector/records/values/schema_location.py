"""Where schemas are, as people say it: a folder or the address of a registry."""

from importlib.util import find_spec
from typing import Final

from dissector.core import limits
from dissector.records.values.opener import ValueOpener
from dissector.records.values.schemas import MISSING, Schemas, SchemaSource

_NEEDED: Final = ("fastavro", "google.protobuf")


class SchemaLocationError(ValueError):
    """Schemas that can't be had. The message is one plain line."""


def opener_with(location: str, bounds: limits.Limits = limits.DEFAULT) -> ValueOpener:
    """Return what opens values by the schemas of a folder, or of a registry (``http://…``). Raises
    `SchemaLocationError`."""
    if not all(map(_is_installed, _NEEDED)):
        raise SchemaLocationError(MISSING)
    return ValueOpener(Schemas(_source(location, bounds), bounds), bounds)


def _source(location: str, bounds: limits.Limits) -> SchemaSource:
    if "://" in location:
        from dissector.records.values.schema_registry import SchemaRegistry

        try:
            return SchemaRegistry(location, bounds)
        except ValueError as error:
            raise SchemaLocationError(f"{location.rpartition('@')[2]}: {error}") from None
    from dissector.records.values.schema_folder import SchemaFolder

    try:
        folder = SchemaFolder(location, bounds)
    except OSError as error:
        raise SchemaLocationError(f"{location}: {(error.strerror or str(error)).lower()}") from None
    if not len(folder):
        raise SchemaLocationError(
            f"{location}: no schema in it (7.avsc, orders-value.proto, 7.desc, orders-value.json)"
        )
    return folder


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False
