"""What is known of groups goes on from a checkpoint: the same findings, and the same changes to them."""

from typing import Any

import pytest

from dissector.capture_session import Capture
from dissector.core.object_graph import from_nodes, to_nodes
from dissector.findings.framework.aggregation import IncrementalAggregation
from tests.cases import cases
from tests.conftest import PCAPS

LATER = 1 << 62


@pytest.mark.long
@cases("name", ["poll-timeout-kip848", "poll-timeout", "crash-kip848", "rolling-restart"])
def test_histories_go_on_from_a_checkpoint(name: str) -> None:
    with Capture([str(PCAPS / "groups" / f"{name}.pcapng.gz")]) as capture:
        list(capture.read())
        observations = []
        for _ in capture.findings.examine_in_order(LATER):
            observations += capture.findings.take_observations()
    made: list[list[Any]] = []
    for is_kept in (False, True):
        aggregation, found = IncrementalAggregation(), []
        for at in range(0, len(observations), 20):
            found += [finding for _, finding in aggregation.aggregate(observations[at : at + 20])]
            if is_kept:
                aggregation = from_nodes(to_nodes(aggregation))
            found += aggregation.take_revisions()
        made.append(found)
    assert observations
    assert made[0] == made[1]
