"""The package, sent along to those who run its stages: nobody installs it on the workers.

What it is made of in C can't be sent like that (numpy, orjson, cramjam, lz4, google-re2, google-crc32c): workers have
it, as they have pyarrow and pandas.
"""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).parents[1]
_LEFT_OUT: Final = ("__pycache__", "cli")


@contextmanager
def shipped(spark: SparkSession) -> Iterator[None]:
    """Send it, to a cluster as to a Spark Connect server: executors fetch it when they start, so while it lasts."""
    with packed() as path:
        spark.addArtifacts(str(path), pyfile=True)
        yield


@contextmanager
def packed() -> Iterator[Path]:
    """The package as a zip file that Python imports from, tables of the schema included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{_ROOT.name}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for each in sorted(_ROOT.rglob("*")):
                inside = each.relative_to(_ROOT)
                if each.is_file() and not set(inside.parts) & set(_LEFT_OUT):
                    target.write(each, Path(_ROOT.name) / inside)
        yield path
