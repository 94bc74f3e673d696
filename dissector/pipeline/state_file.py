"""Graphs of objects as a file: what a follower keeps from one micro-batch to the next.

A file is a stream of Arrow IPC, then 32 bytes: the SHA-256 of the stream. Its table has the nodes of one or more graphs
(`core/object_graph`), which any tool that reads Arrow can list; its metadata say which version of kdissect wrote it.

Invariants:
  * nothing of a file is used unless it is whole and of this version. Whatever else is there raises `StateFileError`,
    with the reason;
  * memory is bounded by the size of the file: a compressed one, which nobody wrote, is refused before it is opened.
"""

import struct
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dissector.core.object_graph import Nodes
from dissector.core.version import version
from dissector.pipeline.arrow_messages import is_compressed

_FORMAT: Final = b"1"
_DIGEST_BYTES: Final = 32
_MAX_BYTES: Final = 1 << 30
"""Bytes of a file that is read."""
_MAX_NODES: Final = 1 << 22
_MAX_ITEMS: Final = 1 << 25
"""References of all nodes together."""
_NODE_TYPES: Final = pa.schema(
    [
        ("graph", pa.dictionary(pa.int8(), pa.string())),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("name", pa.dictionary(pa.int32(), pa.string())),
        ("number", pa.int64()),
        ("data", pa.large_binary()),
        ("items", pa.large_list(pa.int32())),
    ]
)


class StateFileError(ValueError):
    """A file that is damaged."""


class StateVersionError(StateFileError):
    """A file of another version of kdissect, whose stages may be others."""


def write_state_file(path: Path, graphs: Mapping[str, Nodes]) -> None:
    """Write a file, completely or not at all, whoever else writes it. Only its user may read it: it may have captured
    bytes as they were."""
    named = [pa.repeat(pa.scalar(name), len(nodes.kind)) for name, nodes in graphs.items()]
    columns = [pa.chunked_array(named, pa.string())]
    for column, field in enumerate(list(_NODE_TYPES)[1:]):
        plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        columns.append(pa.chunked_array([pa.array(nodes[column], plain) for nodes in graphs.values()], plain))
    table = pa.table(columns, names=_NODE_TYPES.names).cast(_NODE_TYPES)
    schema = _NODE_TYPES.with_metadata({b"format": _FORMAT, b"kdissect": _version().encode()})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as stream:
        stream.write_table(table.replace_schema_metadata(schema.metadata).combine_chunks())
    data = out.getvalue()
    new = path.with_name(f"{path.name}.{time.monotonic_ns()}.new")
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(data)
        file.write(sha256(data).digest())
    new.replace(path)


def read_state_file(path: Path) -> dict[str, Nodes]:
    """Return the graphs of a file by name. Raises `StateFileError`, and `OSError` where there is none."""
    if path.stat().st_size > _MAX_BYTES:
        raise StateFileError(f"larger than {_MAX_BYTES >> 30} GiB")
    data = memoryview(path.read_bytes())
    if sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise StateFileError("damaged")
    try:
        if is_compressed(data[:-_DIGEST_BYTES]):
            raise StateFileError("compressed")
        with pa.ipc.open_stream(pa.py_buffer(data[:-_DIGEST_BYTES])) as stream:
            metadata = stream.schema.metadata or {}
            if (metadata.get(b"format"), metadata.get(b"kdissect")) != (_FORMAT, _version().encode()):
                raise StateVersionError(f"of kdissect {metadata.get(b'kdissect', b'?').decode(errors='replace')}")
            if not stream.schema.equals(_NODE_TYPES):
                raise StateFileError("damaged")
            table = stream.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, struct.error) as error:  # what is read is in memory: no error of a disk
        raise StateFileError("damaged") from error
    if len(table) > _MAX_NODES or (pc.sum(pc.list_value_length(table["items"])).as_py() or 0) > _MAX_ITEMS:
        raise StateFileError("too many nodes")
    graphs = {name: table.filter(pc.equal(table["graph"], name)) for name in table["graph"].unique().to_pylist()}
    return {name: Nodes(*map(_values, graph.columns[1:])) for name, graph in graphs.items()}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column: one object for all that have one place in a dictionary."""
    if not pa.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    found: list[Any] = []
    for chunk in column.chunks:
        words = [*chunk.dictionary.to_pylist(), None]
        found += [words[place] for place in chunk.indices.fill_null(len(words) - 1).to_pylist()]
    return found


def _version() -> str:
    return version("kafka-dissector")
