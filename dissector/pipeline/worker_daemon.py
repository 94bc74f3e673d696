"""The process of which Spark forks its Python workers on this machine, with what tasks import imported once.

A worker collects garbage after each task. What is imported here is left out of that, which would take a twentieth of a
second each time, and its memory stays shared by all workers.

pandas is hidden from pyarrow, which imports it to see whether a list is one of its objects: that takes a third of the
start, in which all tasks wait, and no task has such objects. pyarrow looks for it once.

Invariant: nothing here starts a thread that a fork must have; those of numpy and pyarrow begin again in a fork.
"""

import gc
import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa
import pyspark.worker  # noqa: F401  # what a worker runs
from pyspark.daemon import manager


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, _WithoutPandas())
pa.array([None])
del sys.meta_path[0]


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
