"""Sends the package to Spark's workers, so that it need not be installed there: all but its faces on a terminal.

Its own library in C is sent as it was compiled here, so workers must have the same system and processor. Dependencies
in C can't be sent like that (numpy, orjson, cramjam, lz4, google-re2, google-crc32c): workers must have them, as they
must have pyarrow and pandas.
"""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).parents[1]
_EXCLUDED: Final = ("__pycache__", "cli", "tui")


@contextmanager
def shipped(spark: SparkSession) -> Iterator[None]:
    """Send the package to a cluster or a Spark Connect server. Executors fetch it when they start, so it exists as long
    as the session."""
    with packed() as path:
        spark.addArtifacts(str(path), pyfile=True)
        yield


@contextmanager
def packed() -> Iterator[Path]:
    """Pack the package into a zip file that Python can import from, schema tables included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{_ROOT.name}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for each in sorted(_ROOT.rglob("*")):
                inside = each.relative_to(_ROOT)
                if each.is_file() and not set(inside.parts) & set(_EXCLUDED):
                    target.write(each, Path(_ROOT.name) / inside)
        yield path
