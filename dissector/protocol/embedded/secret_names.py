"""Names of secrets, as users and plugins write them: one list for configs, URLs and error messages."""

import re
from typing import Final

_NAME: Final = re.compile(
    r"passw|pass.?phrase|secret|credential|jaas|private.?key|api.?key|access.?key|auth.?info|user.?info|signature"
    r"|(?:^|[._-])(?:pwd|pass|pin|sas)$|(?:^|[._-]|access|refresh|bearer|auth|id)tokens?(?:$|[._-])|authorization|cookie",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ASSIGNED: Final = re.compile(r"([A-Za-z0-9_.-]+)[\"']?\s*[=:]")
_USER: Final = re.compile(r"[^\s/,:@]*:[^\s/,@]+@")


def is_secret_name(name: str) -> bool:
    """Whether what has this name may be a secret: ``connection.password``, ``x-api-key``, ``clientSecret``."""
    return _NAME.search(name) is not None


def words_with_secret_names(text: str) -> list[str]:
    """Return the words of a text that are names of secrets."""
    return [word for word in _WORD.findall(text) if is_secret_name(word.strip("."))]


def has_user_password(text: str) -> bool:
    """Whether a text has ``user:password@`` in it, as URLs do."""
    return _USER.search(text) is not None


def assigns_secret(text: str) -> bool:
    """Whether a text has a value for such a name, as URLs and login modules do, or a user's password."""
    return has_user_password(text) or any(map(is_secret_name, _ASSIGNED.findall(text)))
