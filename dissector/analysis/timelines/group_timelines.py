"""Timelines of groups: the classic protocol by generations, the newer ones (KIP-848, 932, 1071) by epochs.

A phase begins when a response has a higher generation or member epoch than any before it. An event with a
generation belongs to its phase, even after the next one has begun; an event without one (a failed join, a coordinator
lookup) belongs to the last phase. Why a phase began is what the group's history says (`dissector/groups`).
"""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, Final

from dissector.analysis.timelines.timeline import (
    MAX_TIMELINES,
    Phase,
    Timeline,
    TimelineEvent,
    body_of,
    event_of,
    format_partitions,
    names_in,
)
from dissector.core.text import counted
from dissector.exchange.info_column import first_error
from dissector.exchange.model import Exchange
from dissector.groups.group_messages import (
    EPOCH,
    EPOCH_APIS,
    TASKS,
    EpochStep,
    coordinators,
    departures,
    epoch_step,
    generation_of,
    leads,
    member_of,
    new_epoch,
)
from dissector.groups.history import GroupHistory
from dissector.groups.report import why
from dissector.groups.verdict import verdict
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name
from dissector.protocol.schema.field_enums import ShareSessionEpoch

FIND_COORDINATOR: Final = "FindCoordinator"
_KINDS: Final[Mapping[int, str]] = {**EPOCH_APIS, ApiKey.SHARE_ACKNOWLEDGE: "share"}


class GroupTimelines:
    """Timelines of groups, by group id; by group id and coordinator where two groups have one name."""

    def __init__(self) -> None:
        self.timelines: dict[str, Timeline] = {}
        self.divided: Set[str] = frozenset()
        """Names that more than one group has (`groups/coordinators.py`); known before the first exchange."""
        self._phases: dict[str, dict[int, Phase]] = {}
        """By group, by generation or epoch."""
        self._handlers: dict[str, Callable[[Exchange, Timeline], None]] = {
            "JoinGroup": self._join, "SyncGroup": self._sync, "Heartbeat": self._heartbeat,
            "OffsetCommit": self._commit, "LeaveGroup": self._leave,
            "ConsumerGroupHeartbeat": self._epoch_heartbeat, "ShareGroupHeartbeat": self._epoch_heartbeat,
            "StreamsGroupHeartbeat": self._epoch_heartbeat, "ShareAcknowledge": self._acknowledge,
        }  # fmt: skip

    @property
    def apis(self) -> frozenset[str]:
        """The relevant APIs."""
        return frozenset((*self._handlers, FIND_COORDINATOR))

    def add(self, exchange: Exchange) -> None:
        """Add an exchange; they come in the order of rows."""
        request = body_of(exchange.request)
        if exchange.fields.api == FIND_COORDINATOR:
            self._find_coordinator(exchange, request)
            return
        group = request.get("group_id")
        handle = self._handlers.get(exchange.fields.api)
        if handle is not None and isinstance(group, str) and group:
            name = f"{group} at {exchange.fields.server}" if group in self.divided else group
            kind = None if exchange.api_key is None else _KINDS.get(exchange.api_key)
            timeline = self._timeline(name, kind)
            if timeline is not None:
                handle(exchange, timeline)

    def explain(self, histories: Mapping[str, GroupHistory]) -> None:
        """Add verdicts, and why phases began."""
        for name, timeline in self.timelines.items():
            history = histories.get(name)
            if history is None or not history.rebalances:
                continue
            timeline.verdict = verdict(history).sentence
            timeline.rename(history.names, history.members)
            phases = self._phases.get(name, {})
            for each in history.rebalances:
                if each.number in phases:
                    phases[each.number].cause = why(each)

    def _timeline(self, group: str, kind: str | None) -> Timeline | None:
        if group not in self.timelines:
            if len(self.timelines) >= MAX_TIMELINES:
                return None
            self.timelines[group] = Timeline(group, kind or "classic")
        if kind is not None:
            self.timelines[group].kind = kind
        return self.timelines[group]

    def _find_coordinator(self, exchange: Exchange, request: Mapping[str, Any]) -> None:
        for key, found in coordinators(request, body_of(exchange.response)):
            timeline = self._timeline(key, None) if key not in self.divided else None
            if timeline is not None:
                words = f"node {found['node_id']}" if found.get("node_id", -1) >= 0 else ""
                timeline.add(_event(exchange, timeline, FIND_COORDINATOR, "", words))

    def _phase(self, timeline: Timeline, number: object) -> Phase:
        """Return the phase of a generation or epoch; the last one if it is unknown."""
        known = self._phases.get(timeline.name, {})
        return known.get(number, timeline.phase) if isinstance(number, int) else timeline.phase

    def _advance(self, timeline: Timeline, number: object, title: str) -> None:
        """Begin a phase if this generation or epoch is new."""
        known = self._phases.setdefault(timeline.name, {})
        if isinstance(number, int) and number > next(reversed(known), 0):
            known[number] = timeline.begin(title)

    def _join(self, exchange: Exchange, timeline: Timeline) -> None:
        request, response = body_of(exchange.request), body_of(exchange.response)
        protocol, generation = response.get("protocol_name") or "", response.get("generation_id")
        self._advance(timeline, generation, f"generation {generation} · {protocol}".rstrip(" ·"))
        words = [f"generation {generation}"] if isinstance(generation, int) and generation >= 0 else []
        words += [f"leads {counted(len(response['members']), 'member')}"] if leads(response) else []
        words += [str(request["reason"])] if request.get("reason") else []
        timeline.add(_event(exchange, timeline, "JoinGroup", member_of(request, response), " · ".join(words)))

    def _sync(self, exchange: Exchange, timeline: Timeline) -> None:
        request = body_of(exchange.request)
        response = exchange.response.decoded_body if exchange.response is not None else {}
        decoded = response.get("assignment_decoded")
        given = decoded.get("assigned_partitions") if isinstance(decoded, dict) else None
        words = format_partitions(given, names_in(exchange)) or "nothing" if given is not None else ""
        event = _event(exchange, timeline, "SyncGroup", request.get("member_id"), f"gets {words}" if words else "")
        timeline.add(event, self._phase(timeline, request.get("generation_id")))

    def _heartbeat(self, exchange: Exchange, timeline: Timeline) -> None:
        request = body_of(exchange.request)
        phase = self._phase(timeline, request.get("generation_id"))
        if first_error(exchange) or exchange.response is None:
            timeline.add(_event(exchange, timeline, "Heartbeat", request.get("member_id"), ""), phase)
        else:
            timeline.beat(phase)

    def _commit(self, exchange: Exchange, timeline: Timeline) -> None:
        request = body_of(exchange.request)
        words = format_partitions(request.get("topics"), names_in(exchange))
        event = _event(exchange, timeline, "OffsetCommit", request.get("member_id"), words)
        timeline.add(event, self._phase(timeline, generation_of(request)))

    def _leave(self, exchange: Exchange, timeline: Timeline) -> None:
        request, response = body_of(exchange.request), body_of(exchange.response)
        for each, error in departures(request, response):
            words = [f"instance {each['group_instance_id']}"] if each.get("group_instance_id") else []
            words += [str(each["reason"])] if each.get("reason") else []
            event = _event(exchange, timeline, "LeaveGroup", each.get("member_id"), " · ".join(words))
            has_errors = bool(response.get("members"))
            timeline.add(event._replace(error=error_name(error) if error else "") if has_errors else event)

    def _epoch_heartbeat(self, exchange: Exchange, timeline: Timeline) -> None:
        request, response = body_of(exchange.request), body_of(exchange.response)
        epoch = new_epoch(response)
        self._advance(timeline, epoch, f"epoch {epoch}")
        changes = list(_epoch_changes(request, response, names_in(exchange)))
        if changes or first_error(exchange) or exchange.response is None:
            member = member_of(request, response)
            timeline.add(_event(exchange, timeline, "Heartbeat", member, " · ".join(changes)))
        else:
            timeline.beat()

    def _acknowledge(self, exchange: Exchange, timeline: Timeline) -> None:
        request = body_of(exchange.request)
        words = format_partitions(request.get("topics"), names_in(exchange))
        closes = request.get("share_session_epoch") == ShareSessionEpoch.FINAL
        text = " · ".join(filter(None, (words, "closes the share session" if closes else "")))
        timeline.add(_event(exchange, timeline, "ShareAcknowledge", request.get("member_id"), text))


def _epoch_changes(request: Mapping[str, Any], response: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    """Yield what a heartbeat with an epoch changes."""
    step = epoch_step(request, response)
    if step is EpochStep.MOVES:
        yield f"epoch {request.get(EPOCH)} → {new_epoch(response)}"
    elif step is not EpochStep.STAYS:
        yield step.value
    if step in (EpochStep.MOVES, EpochStep.STAYS) and isinstance(request.get("topic_partitions"), list):
        yield f"owns {format_partitions(request['topic_partitions'], names) or 'nothing'}"
    assignment = response.get("assignment")
    if isinstance(assignment, dict):
        yield f"is given {format_partitions(assignment.get('topic_partitions'), names) or 'nothing'}"
    for tasks in TASKS:
        if response.get(tasks):
            yield f"is given {tasks.replace('_', ' ')} " + format_partitions(
                [
                    {"name": each.get("subtopology_id"), "partitions": each.get("partitions")}
                    for each in response[tasks]
                ],
                {},
            )
    for status in response.get("status") or []:
        yield str(status.get("status_detail"))


def _member_name(exchange: Exchange, timeline: Timeline, member: object) -> str:
    return timeline.member(member if isinstance(member, str) else "", exchange.fields.client_id)


def _event(exchange: Exchange, timeline: Timeline, what: str, member: object, words: str) -> TimelineEvent:
    return event_of(exchange, what, _member_name(exchange, timeline, member), words)
