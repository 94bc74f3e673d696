"""The process of which Spark forks its Python workers on this machine, with what tasks import imported once.

A worker collects garbage after each task. What is imported here is left out of that, which would take a twentieth of a
second each time, and its memory stays shared by all workers.

Invariant: nothing here starts a thread that a fork must have; those of numpy and pyarrow begin again in a fork.
"""

import gc

import pandas  # noqa: F401  # pyspark imports it in each worker, pyarrow with it
import pyspark.worker  # noqa: F401  # what a worker runs
from pyspark.daemon import manager

import dissector.pipeline.partition_rows
import dissector.pipeline.read_tasks
import dissector.pipeline.whole_files  # noqa: F401  # what tasks run, as the two above

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
