"""The folder of the tables, wherever it lies: on this machine, or a file system that the whole cluster has.

What Spark writes, Spark writes; here is the rest: what is there, moving, removing. It goes through pyarrow, which needs
no JVM, so that it is the same under Spark Connect: `file:`, `s3:`, `hdfs:` (with libhdfs), `gs:`, `abfs:`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.fs

_IS_URI: Final = "://"
_LOCAL: Final = "file://"


class FolderError(Exception):
    """The folder can't be used. Its text is one plain line that names it."""


class Folder:
    """Of the tables. Names are relative to it, with slashes. Raises `FolderError` where it can't be made."""

    def __init__(self, out: str) -> None:
        self.uri = out.rstrip("/") if _IS_URI in out else f"{_LOCAL}{Path(out).absolute()}"
        """As Spark has to be told: it takes what is odd in a name as it stands."""
        try:
            self._files, self._path = opened(out)
            self._files.create_dir(self._path, recursive=True)
            self._prove()
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise FolderError(f"{out}: {_reason(error)}") from None

    def _prove(self) -> None:
        """Whether it can be written to is known before the work, and not behind it."""
        probe = f"{self._path}/.kdissect"
        with self._files.open_output_stream(probe):
            pass
        self._files.delete_file(probe)

    def spark(self, name: str) -> str:
        """What Spark reads or writes."""
        return f"{self.uri}/{name}"

    def has(self, name: str) -> bool:
        """Whether there is such a folder. Raises `FolderError`."""
        with self._told(name):
            return bool(self._files.get_file_info(f"{self._path}/{name}").type == pa.fs.FileType.Directory)

    def partitions(self, name: str) -> list[str]:
        """Folders of days and captures in one of a table, `day=…/capture=…`. Raises `FolderError`."""
        if not self.has(name):
            return []
        top = f"{self._path}/{name}"
        with self._told(name):
            found = self._files.get_file_info(pa.fs.FileSelector(top, recursive=True))
        inside = (each.path[len(top) + 1 :] for each in found if each.type == pa.fs.FileType.Directory)
        return sorted(each for each in inside if each.startswith("day=") and each.count("/") == 1)

    def move(self, source: str, target: str) -> None:
        """Put a folder in the place of another. Raises `FolderError`."""
        self.remove(target)
        with self._told(target):
            self._files.create_dir(f"{self._path}/{target}".rpartition("/")[0], recursive=True)
            self._files.move(f"{self._path}/{source}", f"{self._path}/{target}")

    def remove(self, name: str) -> None:
        """A folder and all in it, if it is there. Raises `FolderError`."""
        if self.has(name):
            with self._told(name):
                self._files.delete_dir(f"{self._path}/{name}")

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """What fails says where."""
        try:
            yield
        except OSError as error:
            raise FolderError(f"{self._path}/{name}: {_reason(error)}") from None


def opened(out: str) -> tuple[pa.fs.FileSystem, str]:
    """The file system that it lies in, and its path there. What is odd in a local name stands as it is, as Hadoop has
    it, and not as a URL would."""
    if _IS_URI not in out or out.startswith(_LOCAL):
        return pa.fs.LocalFileSystem(), str(Path(out.removeprefix(_LOCAL)).absolute())
    files, path = pa.fs.FileSystem.from_uri(out)
    return files, path.rstrip("/")


def _reason(error: Exception) -> str:
    """The system's own words, without those of the library before them."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error).splitlines()[0].lower()
