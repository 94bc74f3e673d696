"""File systems, by URL: of this machine, of object stores, and HDFS, as far as pyarrow opens them.

They need no JVM: the same code runs in Spark's tasks, under Spark Connect, and without Spark. Credentials, region and
endpoint come from the environment and from the files that the tools of each store use, such as `AWS_ENDPOINT_URL`.

Invariants:
  * names have no escapes, as in Hadoop and in the stores' own tools, and unlike in URLs;
  * an error becomes one line (`reason`).
"""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs

LOCAL: Final = "file://"
SCHEMES: Final = ("s3", "gs", "abfss", "hdfs")
_SAME: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
"""Other names of schemes, most of them Hadoop's."""
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/*(.*)", re.DOTALL)
_S3_ERROR: Final = re.compile(r"AWS Error ([A-Z0-9_]+) during \w+ operation: (.*)")
_XML_ERROR: Final = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_REQUEST_ID: Final = re.compile(r" *\(Request ID: [^)]*\)")
_DECORATION: Final = re.compile(r"\x1b\[[0-9;]*m|\u21b3")
_OF_LIBRARY: Final = re.compile(r"^(?:\w[\w ]* error(?::| ->) *)+")
"""The library's words before those of the store."""
_FRAME: Final = re.compile(r"^\d+: <unknown>$")
"""A line of a stack without names, which follows the words."""
_MAX_LINES: Final = 6
ERRORS: Final = (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError)
"""What pyarrow raises for a name or a store that can't be used."""


def is_url(name: str) -> bool:
    """Return whether this is the URL of a store, not a path of this machine."""
    return _URL.match(name) is not None and not name.startswith(LOCAL)


def normal_uri(name: str) -> str:
    """Return a folder or a file as a URI without escapes, and without a slash at its end; a path becomes absolute."""
    found = _URL.fullmatch(name)
    if found is None or name.startswith(LOCAL):
        return f"{LOCAL}{Path(name.removeprefix(LOCAL)).absolute()}"
    scheme, store, path = found.groups()
    return f"{_SAME.get(scheme.lower(), scheme.lower())}://{store}/{path}".rstrip("/")


def opened(name: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the file system of a folder or a file, and its path there. Raises one of `ERRORS`."""
    uri = normal_uri(name)
    if uri.startswith(LOCAL):
        return pa.fs.LocalFileSystem(), uri.removeprefix(LOCAL)
    scheme, store, path = _parts(uri)
    files, top = pa.fs.FileSystem.from_uri(f"{scheme}://{store}")
    return files, f"{top.rstrip('/')}/{path}".rstrip("/")


def is_there(name: str) -> bool:
    """Return whether a folder or a file is there. Raises one of `ERRORS`."""
    files, path = opened(name)
    found: bool = files.get_file_info(path).type != pa.fs.FileType.NotFound
    return found


def create_folder(files: pa.fs.FileSystem, path: str) -> None:
    """Create a folder where there are such: object stores only have names with slashes. Raises `OSError`."""
    if files.type_name in ("local", "hdfs"):
        files.create_dir(path, recursive=True)


def delta_uri(uri: str) -> str:
    """Return the name of a folder as the library of Delta's log needs it: a path, or a URL with escapes. Raises
    `OSError`."""
    uri = normal_uri(uri)
    if uri.startswith(LOCAL):
        return uri.removeprefix(LOCAL)
    scheme, store, path = _parts(uri)
    return f"{scheme}://{store}/{quote(path)}"


def _parts(uri: str) -> tuple[str, str, str]:
    """Return the scheme, the store and the path of a URL. Raises `OSError` if there is no such store."""
    scheme, _, rest = uri.partition("://")
    store, _, path = rest.partition("/")
    if scheme not in SCHEMES:
        raise OSError(f"tables and captures are read from {', '.join(SCHEMES)}, and paths, not from {scheme}")
    if not store:
        raise OSError(f"this URL names no {'server' if scheme == 'hdfs' else 'bucket'}")
    return scheme, store, path


def delta_options(uri: str) -> dict[str, str] | None:
    """Return what the library of Delta's log must be told besides: it refuses an endpoint without TLS otherwise."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return {"AWS_ALLOW_HTTP": "true"} if uri.startswith("s3:") and endpoint.startswith("http:") else None


def reason(error: Exception) -> str:
    """Return what went wrong as one line: the system's or the store's own words, without the library's."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    if found := _XML_ERROR.search(str(error)):
        code, details = found.groups()
        return f"{_CAPITAL.sub(' ', code).lower()}: {details}"
    lines = [_DECORATION.sub("", line).strip() for line in str(error).splitlines()]
    words = ": ".join(line for line in lines[:_MAX_LINES] if line and not _FRAME.match(line)) or type(error).__name__
    words = _OF_LIBRARY.sub("", _REQUEST_ID.sub("", words)).strip().rstrip(".")
    if found := _S3_ERROR.search(words):
        code, details = found.groups()
        words = f"{code.replace('_', ' ').lower()}: {details}"
    return words[:1].lower() + words[1:]
