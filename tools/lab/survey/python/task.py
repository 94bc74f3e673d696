"""What the programs of the survey share: their arguments, the records, when to end."""

import sys
import threading

SERVERS, SCENARIO, TOPIC, GROUP = sys.argv[1:5]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ALICE, WRONG = "alice", "not-her-secret"
GIVE_UP_SECONDS = 8


def order(n: int, words: int = 12) -> tuple[bytes, bytes]:
    """Return the key and the value of a record."""
    return b"customer-%d" % (n % 7), b"order %d: " % n + b"teacup " * words


def input_ends() -> threading.Event:
    """Return what is set when standard input ends."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended
