"""The archive of Spark's Java classes, with which a session starts in about two thirds of the time.

The first session on a machine makes Java write the archive when it ends (class data sharing, JEP 350); the following
ones map it. There is one archive, of 165 MB, in the user's cache folder; with another Java or another Spark it is
replaced. Java ignores an archive that does not fit its version or the jars, and one that is not complete.
"""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

_QUIET: Final = "-Xlog:disable -Xlog:all=warning:stderr"
"""By default Java writes what it can't archive to standard output, which is ours."""
_PLAIN: Final = re.compile(r"[\w./@+-]+")
"""Paths that need no quotes in Java's options; a colon would separate two archives."""


def java_options(*versions: str) -> str:
    """Return the options with which the JVM uses the archive for these versions of Java and Spark, or writes it when it
    ends; none if the cache folder can't be written to."""
    name = f"spark-{sha256(repr(versions).encode()).hexdigest()[:16]}.jsa"
    with suppress(OSError, RuntimeError):
        path = _cache_folder() / name
        if not _PLAIN.fullmatch(str(path)):
            return ""
        if _is_complete(path):
            return f"{_QUIET} -XX:SharedArchiveFile={path}"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in path.parent.glob("spark-*.jsa"):
            other.unlink(missing_ok=True)  # a JVM that uses it keeps it open
        if os.access(path.parent, os.W_OK):
            return f"{_QUIET} -XX:ArchiveClassesAtExit={path}"
    return ""


def _cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/kdissect``. Raises `RuntimeError` for a user without a home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification: relative paths are ignored
    return (given if given.is_absolute() else Path.home() / ".cache") / "kdissect"


def _is_complete(path: Path) -> bool:
    """Whether the archive has a header: Java writes it last."""
    try:
        with path.open("rb") as file:
            return any(file.read(4))
    except FileNotFoundError:
        return False
