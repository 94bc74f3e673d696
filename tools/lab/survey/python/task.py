"""What the programs of the survey share: their arguments, how they log in, the records, when to end."""

import os
import sys
import threading

SERVERS, SCENARIO, TOPIC, GROUP = sys.argv[1:5]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ALICE, WRONG = "alice", "not-her-secret"
GIVE_UP_SECONDS = 8
MECHANISM, TRUST = os.environ.get("LAB_MECHANISM", ""), os.environ.get("LAB_TRUST", "")
"""How to log in, and the certificate to trust; empty for neither."""
PASSWORD, TOKEN = "alice-secret", os.environ.get("LAB_TOKEN", "")
PROTOCOL = f"{'SASL_' if MECHANISM else ''}{'SSL' if TRUST else 'PLAINTEXT'}"
FAULTED_COUNT = 40
DELIVERED_SECONDS, SEEN_SECONDS = 150, 90
"""How long a program under faults waits until all records are delivered or refused, and until it has read them."""


def told(what: str, error: object) -> None:
    """Say what a client told its application: ``not delivered`` of a record, ``thrown`` by a consumer, ``seen``."""
    words = " ".join(str(error).split()) or type(error).__name__
    name = "" if isinstance(error, str | int) else f"{type(error).__name__}: "
    print(f"{what}: {name}{words}", file=sys.stderr, flush=True)


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
