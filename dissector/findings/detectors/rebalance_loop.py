"""Groups that rebalance again and again, by their histories (`dissector/groups`), which are imported where a capture
has a group."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import DecodedExchange
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.groups.coordinators import MAX_COORDINATORS, Coordinators
from dissector.groups.group_event import GroupEvent, GroupFields, group_fields, is_steady
from dissector.groups.group_messages import CLASSIC_APIS, EPOCH_APIS
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey

if TYPE_CHECKING:
    from dissector.groups.history import GroupHistory

KNOWN: Final = 2_048
"""Pairs of bodies of which it is known what they say."""
KEPT: Final = 3
"""Generations that a history keeps here: causes are counted, and decided when the next generation begins."""
_SAY_WHEN_CLEAN: Final = frozenset((ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP, *EPOCH_APIS))
"""APIs of which an exchange without an error says something about a group."""
_SAY_WHEN_CLEAN_KEYS: Final = np.array(sorted(_SAY_WHEN_CLEAN))


class GroupExtractor(Extractor):
    """Observes what members and coordinators say, by group."""

    apis: ClassVar = CLASSIC_APIS | EPOCH_APIS.keys()

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._known: dict[tuple[int, int], tuple[Values, Values, tuple[GroupFields, ...]]] = {}
        """What bodies say, by their identities; the bodies are kept with it, so that no other gets its identity."""

    def needed(self, rows: ExaminedRows, is_clean: Bool) -> Bool:
        """Without an error, a heartbeat or a commit of the classic protocol shows nothing."""
        needed: Bool = ~is_clean | np.isin(rows.api_key, _SAY_WHEN_CLEAN_KEYS)
        return needed

    def examine_exchange(self, exchange: DecodedExchange) -> None:
        """Observe an exchange, by the groups that it is about."""
        if exchange.api_key not in _SAY_WHEN_CLEAN and not exchange.errors:
            return
        for said in self._said(exchange):
            event = GroupEvent(
                exchange.api_key, self.context.client_id(exchange.row), self.context.client(exchange.connection),
                self.context.first_packet(exchange.connection), exchange.request_ns, exchange.response_ns, said,
                self.context.server(exchange.connection),
            )  # fmt: skip
            self.observe((said.group,), exchange.row, exchange.position, event)

    def _said(self, exchange: DecodedExchange) -> tuple[GroupFields, ...]:
        """Equal bodies are read once, and are the same objects; of a heartbeat that changes nothing there is nothing
        to say."""
        request, response = exchange.request, exchange.response
        known = self._known.get((id(request), id(response)))
        if known is not None and known[0] is request and known[1] is response:  # not so after a checkpoint
            return known[2]
        said = tuple(
            each for each in group_fields(exchange.api_key, exchange.version, request, response)
            if exchange.api_key not in EPOCH_APIS or not is_steady(each)
        )  # fmt: skip
        if len(self._known) == KNOWN:
            self._known.clear()
        self._known[id(request), id(response)] = request, response, said
        return said


class RebalanceLoop(Aggregator[GroupEvent]):
    """Finds groups that rebalance again and again."""

    extractor: ClassVar = GroupExtractor
    explanation: ClassVar = Explanation(
        "rebalance-loop",
        "Group rebalances again and again",
        Severity.WARNING,
        "One member left or was removed three times, members joined and soon left four times in a row, or a group "
        "rebalanced five times for one other cause, with pauses no longer than ten minutes or twice "
        "max.poll.interval.ms. Deployments, restarts and steps of the protocol (MEMBER_ID_REQUIRED) are not counted.",
        "The finding names the member and its reason. A member that takes longer than max.poll.interval.ms to process "
        "what it polled leaves and joins again. One whose heartbeats stop for session.timeout.ms is removed. "
        "Processes that start and stop one after the other cause it too, and so do members whose traffic is not in "
        "the capture.",
        "Do what the finding says for its cause; kdissect groups, and L on the screen, show each generation. For late "
        "polls, process less at a time (max.poll.records) or allow more time (max.poll.interval.ms); for restarts, "
        "give members a group.instance.id; the cooperative-sticky assignor and group.protocol=consumer stop fewer of "
        "them.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._group = str(scope[0])
        self._coordinators = Coordinators()
        self._groups = {"": _followed(self._group)}
        """By coordinator, once the capture shows that each has another group of this name; else by nothing."""

    def add(self, row: int, observed: GroupEvent) -> None:
        """Fold an event; report a loop once, and update it."""
        observed = GroupEvent.restored(observed)
        group = self._group_of(observed)
        history = group.history
        history.add(row, observed)
        if observed.said.leads:
            history.decide()
        state = history.loops + history.tally.count if history.loops else 0
        if state == group.reported:
            return
        from dissector.groups.verdict import verdict

        group.reported = state
        message = f"group {verdict(history).sentence}"
        if group.finding is None:
            group.finding = self.report(row, message, "response.body")
        else:
            group.finding.update(message)

    def _group_of(self, observed: GroupEvent) -> "_FollowedGroup":
        """Return the group that an event belongs to. What was folded before that is of none of them."""
        self._coordinators.add(observed)
        server = observed.server if self._coordinators.disagree else ""
        group = self._groups.get(server)
        if group is None:
            if len(self._groups) > MAX_COORDINATORS:
                del self._groups[next(iter(self._groups))]
            group = self._groups[server] = _followed(self._group, server)
        return group


@dataclass(slots=True)
class _FollowedGroup:
    history: "GroupHistory"
    reported: int = 0
    """Its rebalances and loops when its finding was last updated."""
    finding: OpenFinding | None = None


def _followed(group: str, server: str = "") -> _FollowedGroup:
    from dissector.groups.history import GroupHistory

    return _FollowedGroup(GroupHistory(group, server, most=KEPT))
