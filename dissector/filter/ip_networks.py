"""IP addresses in filters: ``10.0.0.1``, ``::1``, and networks as ``10.0.0.0/8`` (RFC 4632, 3.1)."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dissector.filter.errors import MismatchError
from dissector.filter.grammar import FilterWord

_EXAMPLES = ("127.0.0.1", "10.0.0.0/8", "::1")


def in_networks(words: Sequence[FilterWord], *, negated: bool) -> Callable[[object], bool]:
    """Return whether a text is an address in any of these networks; if `negated`, in none. Raises `MismatchError`."""
    networks = [_network(word) for word in words]

    def matches(value: object) -> bool:
        address = _address(value) if isinstance(value, str) else None
        return address is not None and any(address in network for network in networks) != negated

    return matches


def _network(word: FilterWord) -> IPv4Network | IPv6Network:
    try:
        return ip_network(word.text, strict=False)
    except ValueError:
        raise MismatchError(word.column, f"{word.text!r} is not an IP address", _EXAMPLES) from None


@lru_cache(maxsize=1024)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
