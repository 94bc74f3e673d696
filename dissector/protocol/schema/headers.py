"""Which version of the header stands before a body.

The rule is KIP-482's: a request has header v2 where its version is flexible, else v1; a response v1 where it is
flexible, else v0. Two messages are exceptions, listed here and nowhere else; Apache has them in the code that
generates ApiMessageType, not in the schema files.
"""

from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api


def request_header_version(api_key: int, version: int) -> int:
    """The version of `RequestHeader` of a request. An unknown key is a KeyError."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0  # the one request that is older than the client id
    return 2 if _flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """The version of `ResponseHeader` of a response. An unknown key is a KeyError."""
    if api_key == ApiKey.API_VERSIONS:
        return 0  # the client can't know yet whether the broker speaks flexible versions (KIP-511)
    return 1 if _flexible(api_key, version) else 0


def _flexible(api_key: int, version: int) -> bool:
    found = api(api_key)
    if found is None:
        raise KeyError(api_key)
    return found.flexible_versions.contains(version)
