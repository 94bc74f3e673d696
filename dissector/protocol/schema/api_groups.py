"""What the APIs are about, in a few groups: for colours and statistics. Facts of Kafka's protocol, by API key."""

from typing import Final

FAMILIES: Final[dict[str, tuple[int, ...]]] = {
    "produce": (0, 22),
    "fetch": (1, 2, 23, 78, 79),
    "metadata": (3, 10, 18, 60, 75),
    "groups": (8, 9, 11, 12, 13, 14, 68, 76, 88),
    "transactions": (24, 25, 26, 27, 28),
    "security": (17, 29, 30, 31, 36, 38, 39, 40, 41, 50, 51),
    "brokers": (4, 5, 6, 7, 52, 53, 54, 55, 56, 58, 59, 62, 63, 64, 67, 70, 73, 80, 81, 82, 83, 84, 85, 86, 87, 94),
}
"""The rest is administration."""
OTHERS: Final = "admin"
_FAMILY: Final = {key: family for family, keys in FAMILIES.items() for key in keys}


def family(api_key: int) -> str:
    """Produce's is ``produce``, JoinGroup's ``groups``; of an API that nobody knows ``admin``, as of most."""
    return _FAMILY.get(api_key, OTHERS)
