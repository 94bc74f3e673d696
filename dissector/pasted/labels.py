"""Which way bytes went, by what stands before them: arrows, words, names of system calls, peers.

A label only says what is likely: where the bytes read to the last one as the other side's, they are right (a broker
*receives* requests). The last label before the bytes counts. A new label is one entry.
"""

import re
from typing import Final, NamedTuple

CONTEXT: Final = 240
"""Characters before the bytes in which a label is looked for."""
_LABELS: Final = (
    # What it says, from the client or not, from the most telling on.
    (r"\bpeer0_|\bpeer: ?0\b", True),
    (r"\bpeer1_|\bpeer: ?1\b", False),
    (r"\b(?:c|client) ?(?:->|→|=>|to) ?(?:s|b|server|broker)\b", True),
    (r"\b(?:s|b|server|broker) ?(?:->|→|=>|to) ?(?:c|client)\b", False),
    (r"[Rr]equest(?!ed|s\b)|REQUEST|\breq\b|\bREQ\b", True),
    (r"[Rr]espon[sd]e?|RESPON[SD]E?|\bresp?\b|\bRESP?\b|\b[Rr]eply\b|\bREPLY\b|\b[Aa]nswer", False),
    (r"\b(?:sendto|sendmsg|sendmmsg|writev?|pwrite64|SSL_write|send)\(", True),
    (r"\b(?:recvfrom|recvmsg|recvmmsg|readv?|pread64|SSL_read|recv)\(", False),
    (r"\b(?:[Ss]end|[Ss]ent|SEND|SENT|[Ss]ending|[Ww]rit(?:e|ing|ten)|WRITE|[Ww]rote|TX)\b", True),
    (r"\b(?:[Oo]ut(?:going|bound)|OUT(?:BOUND)?)\b", True),
    (r"\b(?:[Rr]ecv|RECV|[Rr]eceiv(?:e|ed|ing)|RECEIVED|[Rr]ead|READ|RX|[Gg]ot)\b", False),
    (r"\b(?:[Ii]n(?:coming|bound)|IN(?:BOUND)?)\b", False),
    (r">{2,}|-+>|=+>|→|⇒|➡|^\s*>", True),
    (r"<{2,}(?!\d|\Z)|<-+|<=+|←|⇐|⬅|^\s*<(?![A-Za-z]|\Z)", False),  # but what stands around bytes, as in Erlang
    (r"\b[Cc]lient\b|\bCLIENT\b", True),
    (r"\b(?:[Ss]erver|SERVER|[Bb]roker|BROKER)\b", False),
)  # fmt: skip
_LABEL: Final = re.compile(
    "|".join(f"(?P<l{number}>{words})" for number, (words, _) in enumerate(_LABELS)), re.MULTILINE
)
_CALL: Final = re.compile(r"\b(?:sendto|sendmsg|writev?|recvfrom|recvmsg|readv?|send|recv)\((\d{1,6})\b")
_NOUNS: Final = range(6)
"""Labels that count before all others: what the bytes are, not what somebody did with them."""
_MESSAGES: Final = range(4, 6)


class Label(NamedTuple):
    """What the text before bytes says."""

    from_client: bool | None
    is_message: bool = False
    """Whether it says that they are a message, and not just some bytes of a stream."""


def label_of(context: str) -> Label:
    """Return what the text before bytes says of them."""
    last: dict[bool, Label] = {}
    for found in _LABEL.finditer(context[-CONTEXT:]):
        number = int(str(found.lastgroup)[1:])
        last[number in _NOUNS] = Label(_LABELS[number][1], number in _MESSAGES)
    return last.get(True) or last.get(False) or Label(None)


def descriptor_of(context: str) -> int | None:
    """Return the file descriptor of the last system call in a text, as `strace` prints it; None if there is none."""
    calls = _CALL.findall(context[-CONTEXT:])
    return int(calls[-1]) if calls else None
