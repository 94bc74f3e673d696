"""What `Slow` knows of a broker lands in checkpoints, and goes on from there."""

from typing import Any

from dissector.core.object_graph import from_nodes, to_nodes
from dissector.findings.detectors.slow_response import EPISODES, Slow, SlowResponse
from dissector.findings.framework.open_findings import FindingStore


def test_a_restored_detector_goes_on() -> None:
    sink = FindingStore(100)
    detector: Any = Slow(sink, ("broker",))
    for n in range(2 * EPISODES):
        detector.add(n, SlowResponse(1, 0, 10 * n, 10 * n + 5, True, "took long"))
    restored: Any = from_nodes(to_nodes(detector))
    restored.add(500, SlowResponse(2, 0, 10 * (2 * EPISODES - 1), 10 * (2 * EPISODES - 1) + 5, True, "took long, too"))
    assert len(restored._known) == EPISODES
    assert restored._known[-1].finding.finding.message.endswith("on 2 connections: the broker may have stalled")
