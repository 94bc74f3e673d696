"""Metadata of Apache Iceberg over the files of tables, for readers that do not know Delta Lake. No row is copied: both
formats have a list of Parquet files, and columns are found by name (`schema.name-mapping.default`).

The metadata is in `_iceberg/TABLE/metadata` beside the tables, where no vacuum looks. `version-hint.text` there names
the newest, for readers without a catalog. With a catalog, that knows which is.

Invariants:
  * each table gets one snapshot with the files that Delta's log has at a moment, if they are others than before;
  * facts are written before `captures`, of one `Snapshot`: a reader that joins them sees captures with all their rows;
  * earlier snapshots are dropped from the metadata: `vacuum` removes their files.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.table import Table, TableProperties

from dissector.tables.delta_log import CAPTURES, existing_table, plain_errors
from dissector.tables.file_systems import opened, reason
from dissector.tables.schemas import FACT_TABLES
from dissector.tables.snapshot import Snapshot
from dissector.tables.storage import StorageError

FOLDER: Final = "_iceberg"
_HINT: Final = "metadata/version-hint.text"
_END: Final = ".metadata.json"
_PROPERTIES: Final = {
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "4",
}


class IcebergTable(NamedTuple):
    """A table as readers of Iceberg see it now."""

    name: str
    metadata: str
    """URI of the metadata."""
    files: int
    added: int
    removed: int


def write_iceberg(
    uri: str, seen: Snapshot, catalog: str | None = None, namespace: str = "kafka"
) -> Iterator[IcebergTable]:
    """Make metadata of Iceberg say what is seen of tables, each as it is done: beside the tables, and in the catalog
    with a name in the configuration of pyiceberg (`.pyiceberg.yaml`, `PYICEBERG_CATALOG__NAME__URI`). Raises
    `StorageError`, also for what a catalog says."""
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # each file without statistics of a column is a warning
    with plain_errors(uri):
        try:
            known = InMemoryCatalog("kdissect") if catalog is None else load_catalog(catalog)
            with suppress(NamespaceAlreadyExistsError):
                known.create_namespace(namespace)
            for name in (*FACT_TABLES, CAPTURES):
                yield _written(known, (namespace, name), f"{uri}/{FOLDER}/{name}", f"{uri}/{name}", seen.files[name])
        except StorageError:
            raise
        except Exception as error:  # each kind of catalog has its own
            raise StorageError(f"{catalog or uri}: {reason(error)}") from None


def _written(catalog: Catalog, identifier: tuple[str, str], location: str, at: str, wanted: list[str]) -> IcebergTable:
    """Make a table have the files `wanted`, those of the Delta table `at` a URI."""
    uri, _, name = at.rpartition("/")
    schema = pa.schema(existing_table(uri, name).schema().to_arrow())
    table = _table(catalog, identifier, location, schema)
    there = {task.file.file_path: task.file for task in table.scan().plan_files()}
    added = [each for each in wanted if each not in there]
    removed = [there[each] for each in sorted(there.keys() - set(wanted))]
    with table.transaction() as transaction:
        if removed or added:
            with transaction.update_snapshot().overwrite() as snapshot:
                for file in removed:
                    snapshot.delete_data_file(file)
                for file in parquet_files_to_data_files(table.io, table.metadata, iter(added)):
                    snapshot.append_data_file(file)
    if len(table.metadata.snapshots) > 1:
        table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
    _hint(location, table)
    return IcebergTable(name, table.metadata_location, len(wanted), len(added), len(removed))


def _table(catalog: Catalog, identifier: tuple[str, str], location: str, schema: pa.Schema) -> Table:
    """Return a table of a catalog with the columns of a Delta table; it is created if it is not there."""
    if isinstance(catalog, InMemoryCatalog) and (newest := _newest(location)) is not None:
        table = catalog.register_table(identifier, newest)
        if not _is_at(table, location):  # the tables were moved, and with them what their metadata says
            catalog.drop_table(identifier)
    try:
        table = catalog.load_table(identifier)
    except NoSuchTableError:
        table = catalog.create_table(identifier, schema, location, properties=_PROPERTIES)
    if not _is_at(table, location):
        name = ".".join(identifier)
        raise StorageError(f"{name} of the catalog is another table, at {table.location()}: choose another namespace")
    with table.update_schema() as update:
        update.union_by_name(schema)
    if table.metadata.name_mapping() is None:
        names = {TableProperties.DEFAULT_NAME_MAPPING: table.schema().name_mapping.model_dump_json()}
        with table.transaction() as transaction:
            transaction.set_properties(names)
    return table


def _is_at(table: Table, location: str) -> bool:
    """Whether a table is at a place, which catalogs write with one slash or three."""
    there: str = table.location()
    return there.replace(":///", ":/").rstrip("/") == location.replace(":///", ":/")


def _newest(location: str) -> str | None:
    """Return the URI of the newest metadata; None if there is none."""
    files, path = opened(f"{location}/{_HINT}")
    with suppress(FileNotFoundError), files.open_input_stream(path) as hint:
        return f"{location}/metadata/{hint.read().decode()}{_END}"
    return None


def _hint(location: str, table: Table) -> None:
    """Name the newest metadata for readers without a catalog."""
    _, _, name = table.metadata_location.rpartition("/")
    files, path = opened(f"{location}/{_HINT}")
    with files.open_output_stream(path) as hint:
        hint.write(name.removesuffix(_END).encode())
