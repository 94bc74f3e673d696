"""The storage of the tables: a folder of this machine, or a prefix of an object store or of HDFS (`file_systems`).

Invariant: nothing is renamed or moved, which object stores can't do.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow.fs

from dissector.capture.errors import CaptureError
from dissector.tables.file_systems import ERRORS, LOCAL, create_folder, normal_uri, opened, reason

_NOT_IN_NAMES: Final = frozenset("%\\[]{}|<>^`")
"""Characters that the library of Delta's log decodes, or can't have in a URL."""


class StorageError(CaptureError):
    """The storage can't be used. Its text is one plain line that names it."""


class Storage:
    """The storage at `out`. Names are relative to it, with slashes. Raises `StorageError` if it can't be created."""

    def __init__(self, out: str) -> None:
        self.uri = normal_uri(out)
        self._check_name(out)
        try:
            self._files, self._path = opened(out)
            create_folder(self._files, self._path)
            self._check_writable()
        except ERRORS as error:
            raise StorageError(f"{out}: {reason(error)}") from None

    def _check_name(self, out: str) -> None:
        if self.is_local:
            if "%" in out:
                raise StorageError(f"{out}: a folder of tables can't have % in its path")
        elif found := next((each for each in self.uri if each in _NOT_IN_NAMES or not each.isprintable()), ""):
            raise StorageError(f"{out}: the URL of tables can't have {found!r} in it")
        elif "//" in self.uri.partition("://")[2]:
            raise StorageError(f"{out}: the URL of tables can't have // in its path")

    def _check_writable(self) -> None:
        """Raise `OSError` if nothing can be written here: Spark would report it in pages."""
        probe = f"{self._path}/._kdissect-{uuid.uuid4().hex}"  # others may look at the same time
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
        return self._names_in(name, pyarrow.fs.FileType.Directory)

    def files(self, name: str) -> list[str]:
        """Return the names of the files in a folder. Raises `StorageError`."""
        return self._names_in(name, pyarrow.fs.FileType.File)

    def _names_in(self, name: str, kind: pyarrow.fs.FileType) -> list[str]:
        with self._named_errors(name):
            found = self._files.get_file_info(pyarrow.fs.FileSelector(f"{self._path}/{name}", allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == kind)

    def mark(self, name: str) -> None:
        """Make a folder that `folders` knows, also where only files are there. Raises `StorageError`."""
        with self._named_errors(name):
            create_folder(self._files, f"{self._path}/{name}")
            with self._files.open_output_stream(f"{self._path}/{name}/began"):
                pass

    def remove_file(self, name: str) -> None:
        """Remove a file. Raises `StorageError`."""
        with self._named_errors(name):
            self._files.delete_file(f"{self._path}/{name}")

    def remove(self, name: str) -> None:
        """Remove a folder and everything in it, if it exists. Raises `StorageError`."""
        with self._named_errors(name):
            if self._files.get_file_info(f"{self._path}/{name}").type == pyarrow.fs.FileType.Directory:
                self._files.delete_dir(f"{self._path}/{name}")

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        """Turn an error into a `StorageError` that names the path."""
        try:
            yield
        except ERRORS as error:
            raise StorageError(f"{self.at(name).removeprefix(LOCAL)}: {reason(error)}") from None
