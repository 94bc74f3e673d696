"""The program where no file may grow beyond 4 kB: `python -m tests.cli.small_disk WORDS…`."""

import resource
import runpy

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
runpy.run_module("dissector.cli.main", run_name="__main__")
