"""Ranges of API keys that vendors use for APIs of their own, which no release of Apache Kafka has."""

from typing import Final

PRIVATE: Final = ((501, 999, "AutoMQ"), (10_000, 14_999, "Confluent"), (15_000, 15_999, "Redpanda"))


def owner_of(api_key: int) -> str:
    """Return whose API an unknown key is, as far as its range says."""
    vendor = next((name for low, high, name in PRIVATE if low <= api_key <= high), None)
    return "not known to this release" if vendor is None else f"in the range of {vendor}'s private APIs"
