"""What follows from another way of logging in: another mechanism has tokens of its own, and as many as it takes; who
logs in at all does so on each connection, and some ask for versions before it and after it."""

from collections.abc import Mapping
from typing import Final

from dissector.analysis.diff.consequence_table import FieldKey, field_of
from dissector.analysis.diff.result import DiffEntry, DiffReason
from dissector.protocol.schema.field_names import ERROR_CODES

MECHANISM: Final[FieldKey] = ("SaslHandshake", "request", "mechanism")
LOGIN: Final[FieldKey] = ("SaslHandshake", "", "")
TOKENS: Final = "SaslAuthenticate"
VERSIONS: Final[tuple[FieldKey, ...]] = (("ApiVersions", "", ""), ("ApiVersions", "", "version"))


def cause_in_login(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return what another way of logging in changes with an entry. An error stands for itself."""
    is_error = entry.path.rpartition(".")[2] in ERROR_CODES
    if entry.api == TOKENS and MECHANISM in entries and not is_error:
        return MECHANISM
    login = entries.get(LOGIN)
    if login is None or login.reason is not DiffReason.ONE_SIDE:
        return None
    if field_of(entry) == (TOKENS, "", "") and entry.reason is DiffReason.ONE_SIDE:
        return LOGIN
    is_more = (entry.count_a > entry.count_b) == (login.count_a > login.count_b)
    return LOGIN if field_of(entry) in VERSIONS and is_more else None
