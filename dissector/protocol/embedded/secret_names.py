"""Names of secrets, as users and plugins write them: one list for configs, URLs, error messages and records.

Invariant: every name that is one of a secret contains one of `MARKS` (a property test), so that a search for those
finds what has to be looked at more closely.
"""

import re
from typing import Final

_NAME: Final = re.compile(
    r"passw|pass[ -~]?phrase|secret(?!ar[iy])|credential|jaas|auth[ -~]?(?:user[ -~]?)?info|signature"
    r"|(?:private|api|access|encryption|signing|session|shared|master|account|storage|keystore"
    r"|subscription|license)[ -~]?key"
    r"|(?:^|[._-])(?:pwd|pass|pin|sas|sig|jwt)$|(?:^|[._-]|access|refresh|bearer|auth|id)tokens?(?:$|[._-])"
    r"|authorization|cookie"
    r"|(?-i:[a-z0-9]Tokens?(?![a-z]))",
    re.IGNORECASE | re.ASCII,
)
_ANY: Final = "\0"
"""In a mark: any byte."""
_STEMS: Final = (
    "passw", "passphrase", "pass\0phrase", "secret", "credential", "jaas", "signature", "token",
    "authorization", "cookie",
    *(
        f"{kind}{between}{noun}"
        for kind, noun in (
            ("private", "key"), ("api", "key"), ("access", "key"), ("auth", "info"), ("user", "info"),
            ("encryption", "key"), ("signing", "key"), ("session", "key"), ("shared", "key"), ("master", "key"),
            ("account", "key"), ("storage", "key"),
            ("keystore", "key"), ("subscription", "key"), ("license", "key"),
        )
        for between in ("", _ANY)
    ),
)  # fmt: skip
_SHORT: Final = ("pwd", "pass", "pin", "sas", "sig", "jwt")
"""Names that are no part of a longer word. In a record they follow a separator, a quote, or, in a header's key, its
length, which is a varint: twice as much."""
_BEFORE: Final = "._-\"'?&;, "
SESSION_KEY: Final = frozenset(("key", "algorithm", "creation-timestamp"))
"""Members of the key that Connect's workers share for a session."""
MARKS: Final = tuple(
    mark.encode()
    for mark in (
        *_STEMS,
        max(SESSION_KEY, key=len),
        *(f"{before}{name}" for name in _SHORT for before in (*_BEFORE, chr(2 * len(name)))),
    )
)
"""In small letters; a byte 0 is any byte."""
WORDS: Final = frozenset(f"{before}{name}".encode() for name in _SHORT for before in _BEFORE)
"""Those of them behind which a name ends."""
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ASSIGNED: Final = re.compile(r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]++)[\"']?\s*+[=:]")
_USER: Final = re.compile(r"(?<![^\s/,@])[^\s/,:@]*+:[^\s/,@]++@")
"""Both begin where a run of their characters begins and give none back: the time grows with the text alone."""


def is_secret_name(name: str) -> bool:
    """Whether what has this name may be a secret: ``connection.password``, ``x-api-key``, ``clientSecret``."""
    return _NAME.search(name) is not None


def is_count(name: str) -> bool:
    """Whether a number under such a name is no secret: how many tokens, how significant."""
    return "token" in name.lower() or name.lower().endswith("sig")


def words_with_secret_names(text: str) -> list[str]:
    """Return the words of a text that are names of secrets."""
    return [word for word in _WORD.findall(text) if is_secret_name(word.strip("."))]


def has_user_password(text: str) -> bool:
    """Whether a text has ``user:password@`` in it, as URLs do."""
    return _USER.search(text) is not None


def assigns_secret(text: str) -> bool:
    """Whether a text has a value for such a name, as URLs and login modules do, or a user's password."""
    return has_user_password(text) or any(map(is_secret_name, _ASSIGNED.findall(text)))
