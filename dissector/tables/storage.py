"""The storage of the tables: a folder of this machine, or a prefix of an object store or of HDFS.

It uses pyarrow, which needs no JVM, so that the same code runs in Spark's tasks, under Spark Connect, and without
Spark: `file:`, `s3:`, `hdfs:` (with libhdfs), `gs:`, `abfs:`.

Invariant: nothing is renamed or moved, which object stores can't do.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.fs

_IS_URI: Final = "://"
LOCAL: Final = "file://"
RUNS: Final = "_runs"
"""Folder of what runs write for themselves, beside the tables."""


class StorageError(Exception):
    """The storage can't be used. Its text is one plain line that names it."""


class Storage:
    """The storage at `out`. Names are relative to it, with slashes. Raises `StorageError` if it can't be created."""

    def __init__(self, out: str) -> None:
        self.uri = spark_uri(out)
        if self.is_local and "%" in out:  # the library that writes Delta's log decodes it, once or twice
            raise StorageError(f"{out}: a folder of tables can't have % in its path")
        try:
            self._files, self._path = opened(out)
            self._files.create_dir(self._path, recursive=True)
            self._check_writable()
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise StorageError(f"{out}: {_reason(error)}") from None

    def _check_writable(self) -> None:
        """Raise `OSError` if nothing can be written here: Spark would report it in pages."""
        probe = f"{self._path}/._kdissect"
        with self._files.open_output_stream(probe):
            pass
        self._files.delete_file(probe)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.uri.startswith(LOCAL)

    def at(self, name: str) -> str:
        """Return the URI of a name, as Spark and `opened` need it."""
        return f"{self.uri}/{name}"

    def folders(self, name: str) -> list[str]:
        """Return the names of the folders in a folder. Raises `StorageError`."""
        with self._named_errors(name):
            found = self._files.get_file_info(pa.fs.FileSelector(f"{self._path}/{name}", allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == pa.fs.FileType.Directory)

    def files(self, name: str) -> list[str]:
        """Return the names of the files in a folder. Raises `StorageError`."""
        with self._named_errors(name):
            found = self._files.get_file_info(pa.fs.FileSelector(f"{self._path}/{name}", allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == pa.fs.FileType.File)

    def remove_file(self, name: str) -> None:
        """Remove a file. Raises `StorageError`."""
        with self._named_errors(name):
            self._files.delete_file(f"{self._path}/{name}")

    def remove(self, name: str) -> None:
        """Remove a folder and everything in it, if it exists. Raises `StorageError`."""
        with self._named_errors(name):
            if self._files.get_file_info(f"{self._path}/{name}").type == pa.fs.FileType.Directory:
                self._files.delete_dir(f"{self._path}/{name}")

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        """Turn an error into a `StorageError` that names the path."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self._path}/{name}: {_reason(error)}") from None


def spark_uri(out: str) -> str:
    """Return the URI of a folder as Spark needs it: without escapes."""
    return out.rstrip("/") if _IS_URI in out else f"{LOCAL}{Path(out).absolute()}"


def delta_uri(out: str) -> str:
    """Return the name of a folder as the library of Delta's log needs it: a path, if it is of this machine."""
    return str(Path(out.removeprefix(LOCAL)).absolute()) if _is_local(out) else out.rstrip("/")


def opened(out: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the file system and the path of a folder. Local names are not escaped, as in Hadoop and unlike in URLs."""
    if _is_local(out):
        return pa.fs.LocalFileSystem(), str(Path(out.removeprefix(LOCAL)).absolute())
    files, path = pa.fs.FileSystem.from_uri(out)
    return files, path.rstrip("/")


def _is_local(out: str) -> bool:
    return _IS_URI not in out or out.startswith(LOCAL)


def _reason(error: Exception) -> str:
    """Return the system's error message without the library's prefix."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error).splitlines()[0].lower()
