"""Which configs are no secrets, and which error messages quote none.

Both are lists of what may be shown, as nobody can list what may not: a config that Kafka does not define is a plugin's,
and its name need not say that its value is a password.

`schema/config_names.json` has names and types from the definitions in Apache's jars: `make schemas` writes it.
"""

import re
from functools import cache, lru_cache
from typing import Final

import orjson

from dissector.core.files import package_file
from dissector.protocol.embedded.secret_names import has_user_password, words_with_secret_names

PASSWORD: Final = "PASSWORD"
_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.")
_QUOTING: Final = re.compile(r"Invalid value .* for configuration \S+?(: .*)?", re.DOTALL)
_QUOTED: Final = re.compile(r"\bconfiguration\s+([^\s:]+)")
_UNQUOTING: Final = re.compile(
    r"|".join((
        r"Authentication failed: Invalid username or password",
        r"Authentication failed during authentication due to invalid credentials with SASL mechanism [A-Z0-9-]{1,20}",
        r"Authentication failed\.?",
        r"Invalid (credentials|username or password|SASL mechanism response)\.?",
        r"Sasl(Authenticate|Handshake) request received after successful authentication",
        r"(Cluster|Topic|Group)? ?[Aa]uthorization failed\.?",
        r"Topic '[a-zA-Z0-9._-]{1,249}' (already exists|is marked for deletion)\.",
        r"Unknown topic config name: [a-z.]{1,80}",
        r"Null value not supported for [a-zA-Z ]{1,40}: ?[a-z.,]{1,200}",
        r"(Replication factor|Number of partitions|Unable to replicate the partition)([ :,().-]+([a-zA-Z]+|\d+))+[.)]*",
        r"This server does not host this topic-partition\.",
        r"Attempt to (delete|describe) a user credential that does not exist(: [a-zA-Z0-9._-]{1,64})?",
        r"Too (few|many) iterations",
        r"Unknown SCRAM mechanism",
        r"Username must not be empty",
    ))
)  # fmt: skip
"""Error messages of brokers that name nothing, or only what is no secret."""


@cache
def config_types() -> dict[str, str]:
    """Return the types of Kafka's configs by their names."""
    raw = package_file("protocol", "schema", "config_names.json").read_bytes()
    types: dict[str, str] = orjson.loads(raw)
    return types


@lru_cache(maxsize=4096)
def is_public_config(name: str) -> bool:
    """Whether a config is one of Kafka's, and not of the type PASSWORD; a listener's config is the one that it
    overrides, with its SASL mechanism in front or not."""
    types = config_types()
    found = _LISTENER.match(name)
    rest = name[found.end() :] if found else name
    kind = types.get(rest) or (types.get(rest.partition(".")[2]) if found else None)
    return kind is not None and kind != PASSWORD


def is_harmless_error(text: str) -> bool:
    """Whether an error message is one that quotes no secret: any other may. A value that it quotes may have the words
    of an error message in it, so all configs that it names must be public."""
    if _QUOTING.fullmatch(text) is not None:
        named = [name.rstrip(".,;") for name in (*_QUOTED.findall(text), *words_with_secret_names(text))]
        return all(map(is_public_config, named)) and not has_user_password(text)
    return not text or _UNQUOTING.fullmatch(text) is not None
