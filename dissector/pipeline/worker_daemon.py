"""The process of which Spark forks its Python workers on this machine, with what tasks import imported once.

A worker collects garbage after each task. What is imported here is left out of that, which would take a twentieth of a
second each time, and its memory stays shared by all workers. No task has objects of pandas, whose import is a third of
the start, in which all tasks wait.

Invariant: nothing here starts a thread that a fork must have; those of numpy and pyarrow begin again in a fork.
"""

import gc
import os

import pyspark.worker  # noqa: F401  # what a worker runs
from pyspark.daemon import manager

from dissector.core.expansion import RUN
from dissector.tables.arrow_types import keep_pandas_out

keep_pandas_out()


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    os.register_at_fork(after_in_child=RUN.leave)  # a worker sets its room by what it reads itself
    manager()
