"""`kdissect` as on a machine with three cores, and with chunks so small that a bundled capture has many."""

from dissector.cli import workers
from dissector.cli.main import main

if __name__ == "__main__":
    workers._workers = lambda _chunks, _least: 3
    workers.CHUNK = 4096
    main()
