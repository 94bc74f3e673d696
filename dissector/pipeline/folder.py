"""The folder of the tables, on this machine or on a file system that the whole cluster can reach.

Spark writes the files; this module lists, moves and removes them. It uses pyarrow, which needs no JVM and so works
under Spark Connect too: `file:`, `s3:`, `hdfs:` (with libhdfs), `gs:`, `abfs:`.
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


class FolderError(Exception):
    """The folder can't be used. Its text is one plain line that names it."""


class Folder:
    """The folder of the tables. Names are relative to it, with slashes. Raises `FolderError` if it can't be created."""

    def __init__(self, out: str) -> None:
        self.uri = spark_uri(out)
        try:
            self._files, self._path = opened(out)
            self._files.create_dir(self._path, recursive=True)
            self._check_writable()
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise FolderError(f"{out}: {_reason(error)}") from None

    def _check_writable(self) -> None:
        """Fail before the work rather than after it."""
        probe = f"{self._path}/.kdissect"
        with self._files.open_output_stream(probe):
            pass
        self._files.delete_file(probe)

    def spark(self, name: str) -> str:
        """Return the URI of a name, for Spark."""
        return f"{self.uri}/{name}"

    def has(self, name: str) -> bool:
        """Whether a folder exists. Raises `FolderError`."""
        with self._named_errors(name):
            return bool(self._files.get_file_info(f"{self._path}/{name}").type == pa.fs.FileType.Directory)

    def partitions(self, name: str) -> list[str]:
        """Return the partitions of a table, `day=…/capture=…`. Raises `FolderError`."""
        if not self.has(name):
            return []
        top = f"{self._path}/{name}"
        with self._named_errors(name):
            found = self._files.get_file_info(pa.fs.FileSelector(top, recursive=True))
        inside = (each.path[len(top) + 1 :] for each in found if each.type == pa.fs.FileType.Directory)
        return sorted(each for each in inside if each.startswith("day=") and each.count("/") == 1)

    def move(self, source: str, target: str) -> None:
        """Replace a folder by another. Raises `FolderError`."""
        self.remove(target)
        with self._named_errors(target):
            self._files.create_dir(f"{self._path}/{target}".rpartition("/")[0], recursive=True)
            self._files.move(f"{self._path}/{source}", f"{self._path}/{target}")

    def remove(self, name: str) -> None:
        """Remove a folder and everything in it, if it exists. Raises `FolderError`."""
        if self.has(name):
            with self._named_errors(name):
                self._files.delete_dir(f"{self._path}/{name}")

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        """Turn an error into a `FolderError` that names the path."""
        try:
            yield
        except OSError as error:
            raise FolderError(f"{self._path}/{name}: {_reason(error)}") from None


def spark_uri(out: str) -> str:
    """Return the URI of a folder as Spark needs it: without escapes."""
    return out.rstrip("/") if _IS_URI in out else f"{LOCAL}{Path(out).absolute()}"


def opened(out: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the file system and the path of a folder. Local names are not escaped, as in Hadoop and unlike in URLs."""
    if _IS_URI not in out or out.startswith(LOCAL):
        return pa.fs.LocalFileSystem(), str(Path(out.removeprefix(LOCAL)).absolute())
    files, path = pa.fs.FileSystem.from_uri(out)
    return files, path.rstrip("/")


def _reason(error: Exception) -> str:
    """Return the system's error message without the library's prefix."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error).splitlines()[0].lower()
