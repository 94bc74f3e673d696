"""What is said of bytes that were never acknowledged: no cause that another one may be instead."""

from typing import Final

import pytest

from dissector.core.times import SECOND
from dissector.findings.detectors.unacknowledged import FULL_SIZED, IDLE_NS, words_about
from dissector.transport.deliveries import Delivery

MTU: Final = "the path may have a smaller MTU"
DEVICE: Final = "a firewall, load balancer or NAT may"
DOWN: Final = "it, or the network to it, may be down"
STILL: Final = "the other end still sent"


@pytest.mark.parametrize(
    ("size", "acked", "idle_ns", "heard", "said"),
    [
        (FULL_SIZED, FULL_SIZED - 1, 0, 0, {MTU}),
        (FULL_SIZED, FULL_SIZED - 1, IDLE_NS - 1, 0, {MTU}),
        (FULL_SIZED, FULL_SIZED - 1, IDLE_NS, 0, {MTU, DEVICE}),
        (FULL_SIZED, FULL_SIZED - 1, IDLE_NS, 1, {MTU}),
        (FULL_SIZED, FULL_SIZED, IDLE_NS, 0, {DEVICE}),
        (FULL_SIZED - 1, 10, IDLE_NS, 0, {DEVICE}),
        (FULL_SIZED - 1, 10, IDLE_NS - 1, 0, {DOWN}),
        (FULL_SIZED, 0, 0, 0, {DOWN}),
        (100, 10, IDLE_NS, 1, {STILL}),
    ],
)
def test_all_causes_that_fit_are_named(size: int, acked: int, idle_ns: int, heard: int, said: set[str]) -> None:
    delivery = Delivery(1, idle_ns, 6, 20 * SECOND, size, acked, heard, is_closed=False, is_acked=False)
    words = words_about(delivery)
    assert {each for each in (MTU, DEVICE, DOWN, STILL) if each in words} == said
