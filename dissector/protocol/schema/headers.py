"""Versions of the headers before bodies.

The rule is KIP-482's: a flexible version has request header v2 and response header v1, others have v1 and v0. Two
messages are exceptions, listed here and nowhere else; Apache has them in the code that generates ApiMessageType, not
in the schema files.
"""

from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api


def request_header_version(api_key: int, version: int) -> int:
    """Return the version of a request's `RequestHeader`. Raises KeyError for an unknown key."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0  # the one request that is older than the client id
    return 2 if _flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return the version of a response's `ResponseHeader`. Raises KeyError for an unknown key."""
    if api_key == ApiKey.API_VERSIONS:
        return 0  # the client does not know yet whether the broker has flexible versions (KIP-511)
    return 1 if _flexible(api_key, version) else 0


def _flexible(api_key: int, version: int) -> bool:
    found = api(api_key)
    if found is None:
        raise KeyError(api_key)
    return found.flexible_versions.contains(version)
