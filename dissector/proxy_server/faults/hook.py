"""Rules as a hook of the proxy: which of them decides about an exchange, and what it does.

Rules are asked in their order; the first one that fires decides about the exchange, and the others are not asked. Those
that act on requests are asked when the request is there, those that act on responses with the response. The rules of
`intercept` come last, and hold what no fault decided about.

Invariants:
  * a frame is held only if a rule can't decide without it: what the head of a request decides is decided by it;
  * what is kept of a connection is bounded;
  * a rule counts an exchange once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from dissector.capture.fault_counts import FaultCount, FiredFault
from dissector.capture.injection_notes import InjectionNote
from dissector.core import limits
from dissector.core.times import SECOND
from dissector.exchange.model import Exchange
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.early_evaluation import Known
from dissector.protocol.schema.api_keys import ApiKey
from dissector.proxy_server.faults import actions
from dissector.proxy_server.faults.acting import FaultPlace, needs_frame, on_request, on_response, place_of
from dissector.proxy_server.faults.armed_rule import ArmedRule
from dissector.proxy_server.faults.conversation import TEACHING, FetchSession, TopicNames
from dissector.proxy_server.faults.exchange_parts import of_head, of_request, set_body, with_response
from dissector.proxy_server.faults.rules import FaultRule
from dissector.proxy_server.hooks import NEED_FRAME, PASS, Action, Connection, FrameHead, Hold, Pass

MOST_WAITING: Final = 10_000
"""Requests of a connection whose response rules wait for."""
MOST_KEPT: Final = 64 << 20
"""Bytes of requests that are kept for them on a connection; rules that need more are not asked."""
MOST_HEADS: Final = 1 << 10
MOST_FIRED: Final = 50
"""The last times that rules fired, as many as are remembered."""
_Results = tuple[tuple[ArmedRule, int], ...]


class Holder(Protocol):
    """Holds frames until a person decides."""

    def hold(self, connection: Connection, head: FrameHead, frame: bytes) -> Hold | None:
        """Let a whole frame wait; None if too much waits."""


class FaultHook:
    """All rules of a run."""

    def __init__(
        self, rules: Sequence[FaultRule], clock: Callable[[], int] = time.monotonic_ns, *,
        holder: Holder | None = None, learns: bool = False,
    ) -> None:  # fmt: skip
        """`clock` returns nanoseconds from any time on; `holder` holds what `intercept` asks for; `learns` if rules may
        be added that need what was said before: names of topics, and partitions of fetch sessions."""
        self.rules: list[ArmedRule] = []
        self.holding: list[ArmedRule] = []
        """The rules of `intercept`."""
        self.holder = holder
        self.learns = learns
        self.version = 0
        """Counts how often there were other rules."""
        self.fired: deque[FiredFault] = deque(maxlen=MOST_FIRED)
        self.clock = clock
        self.names = TopicNames()
        self.reads_topics = False
        """Whether a rule is about topics, so that their ids are to be known by name."""
        for each in rules:
            self.add(each)

    def add(self, rule: FaultRule) -> ArmedRule:
        """Ask one more rule from now on, behind the others; return it with its counts."""
        armed = ArmedRule(len(self.rules) + 1, rule)
        self.rules.append(armed)
        self.reads_topics |= armed.reads_topics
        self.version += 1
        return armed

    def hold(self, rules: Sequence[FaultRule]) -> None:
        """Hold what these rules match from now on, in place of what was held before."""
        for before in self.holding:
            before.arm(is_armed=False)  # responses that are waited for are held no more
        self.holding = [ArmedRule(0, each) for each in rules]
        self.reads_topics |= any(each.reads_topics for each in self.holding)
        self.version += 1

    @property
    def all_rules(self) -> Iterator[ArmedRule]:
        """Those that are asked, in their order."""
        yield from self.rules
        yield from self.holding

    def fires(self, rule: ArmedRule, connection: Connection, head: FrameHead) -> None:
        """Count that a rule fires, of a request or a response."""
        rule.fired += 1
        if rule.number:
            fired = FiredFault(rule.number, time.time_ns(), connection.client, head.correlation_id, head.api_key)
            self.fired.append(fired)

    def deciders(self, connection: Connection) -> tuple["RequestFaults", "ResponseFaults"]:
        """As `Hook` says."""
        between = _Between(self, connection)
        return RequestFaults(between), ResponseFaults(between)

    @property
    def counts(self) -> list[FaultCount]:
        """What became of the rules so far, in their order."""
        return [each.count for each in self.rules]


class _Waiting(NamedTuple):
    """A request whose response is waited for."""

    exchange: Exchange
    rules: _Results
    kept: int
    """Bytes that are kept of it."""
    has_fired: bool
    """Whether its one rule has fired, with the request, and acts on the response too."""


class _Between:
    """What both directions of a connection share."""

    def __init__(self, hook: FaultHook, connection: Connection) -> None:
        self.hook = hook
        self.connection = connection
        self.waiting: dict[int, _Waiting] = {}
        self.kept = 0
        self.session = FetchSession()
        self.muted_until = 0
        """Before this time no request goes on, as after a throttled response (KIP-219)."""
        self.muted_by = ""
        self._heads: dict[tuple[int, int, str | None, bool], _Results] = {}
        self._version = -1
        """Which rules `_heads` is about."""

    def of_head(self, head: FrameHead) -> _Results:
        """Return the rules that may apply to a request, with what its head says: `OPEN` or `YES`."""
        if self._version != self.hook.version:
            self._heads.clear()
            self._version = self.hook.version
        key = (head.api_key, head.api_version, head.client_id, head.has_response)
        found = self._heads.get(key)
        if found is None:
            exchange = of_head(self.connection, head)
            found = tuple(
                (each, OPEN if each.varies else each.evaluate(exchange, Known.HEAD)) for each in self.hook.all_rules
                if place_of(each.rule.action, head) is not FaultPlace.NOWHERE
            )  # fmt: skip
            found = tuple((each, result) for each, result in found if result != NO)
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            self._heads[key] = found
        if not any(each.varies for each, _ in found):
            return found
        exchange = of_head(self.connection, head)
        again = ((each, each.evaluate(exchange, Known.HEAD) if each.varies else result) for each, result in found)
        return tuple((each, result) for each, result in again if result != NO)

    def comment(self, rule: ArmedRule, head: FrameHead) -> str:
        """Return the comment on what a rule does."""
        by = f"fault {rule.name}"
        return InjectionNote(self.connection.client, head.correlation_id, by, str(rule.rule.action)).comment()

    def hold(self, rule: ArmedRule, head: FrameHead, frame: bytes | None) -> Hold | None:
        """Let a frame wait that is to be held; None if that can't be."""
        holder = self.hook.holder
        held = None if holder is None or frame is None else holder.hold(self.connection, head, frame)
        rule.fired += held is not None
        rule.unable += held is None
        return held

    def wait_for(self, head: FrameHead, waiting: _Waiting) -> None:
        """Wait for the response to a request."""
        self.forget(head.correlation_id)
        if len(self.waiting) >= MOST_WAITING:
            self.forget(next(iter(self.waiting)))
        if self.kept + waiting.kept > MOST_KEPT:
            for rule, _ in waiting.rules:
                rule.unable += 1
            return
        self.waiting[head.correlation_id] = waiting
        self.kept += waiting.kept

    def forget(self, correlation_id: int) -> None:
        """Wait no longer for a response."""
        if (before := self.waiting.pop(correlation_id, None)) is not None:
            self.kept -= before.kept


class RequestFaults:
    """Decides about requests."""

    def __init__(self, between: _Between) -> None:
        self._between = between

    def decide(self, head: FrameHead, frame: bytes | None) -> Action:
        """As `Decider` says."""
        between = self._between
        if head.api_key < 0:
            return PASS
        now_ns = between.hook.clock()
        found = between.of_head(head)
        follows = head.api_key == ApiKey.FETCH and (
            between.hook.learns or any(_follows_session(each) for each, _ in found)
        )
        found = tuple((each, result) for each, result in found if not each.is_over(now_ns))
        if frame is None and (follows or any(_needs_request(each, result, head) for each, result in found)):
            if head.size <= limits.DEFAULT.frame_size:
                return NEED_FRAME
            found = self._without_large(found, head)
        return self._muted(now_ns, head, self._decided(now_ns, head, frame, found, follows=follows))

    @staticmethod
    def _without_large(found: _Results, head: FrameHead) -> _Results:
        """Return the rules that can do without the request."""
        for each, result in found:
            each.unable += _needs_request(each, result, head)
        return tuple((each, result) for each, result in found if not _needs_request(each, result, head))

    def _decided(self, now_ns: int, head: FrameHead, frame: bytes | None, found: _Results, *, follows: bool) -> Action:
        between = self._between
        if not found and not follows:
            return PASS
        exchange = self._exchange(head, frame, follows=follows)
        later: list[tuple[ArmedRule, int]] = []
        held: Hold | None = None
        for rule, result in found:
            rule.asked += 1
            if place_of(rule.rule.action, head) is FaultPlace.RESPONSE:
                known = rule.evaluate(exchange, Known.REQUEST) if result == OPEN else result
                later += [(rule, known)] if known != NO else []
                continue
            if result == OPEN and not rule.matches(exchange):
                continue
            rule.matched += 1
            if isinstance(rule.rule.action, actions.HoldMessage):
                held = between.hold(rule, head, frame)
                continue
            action = on_request(rule.rule.action, head, frame, exchange, between.comment(rule, head))
            if action is None:
                rule.unable += 1
            elif rule.triggers.admit(now_ns):
                between.hook.fires(rule, between.connection, head)
                if isinstance(rule.rule.action, actions.SlowFault) and head.has_response:
                    between.wait_for(head, _Waiting(exchange, ((rule, YES),), 0, has_fired=True))
                return action
        if later:
            is_open = any(result == OPEN for _, result in later)
            kept = len(frame) if frame is not None and is_open else 0
            if not kept:
                exchange = of_head(between.connection, head)
            between.wait_for(head, _Waiting(exchange, tuple(later), kept, has_fired=False))
        return held or PASS

    def _exchange(self, head: FrameHead, frame: bytes | None, *, follows: bool) -> Exchange:
        between = self._between
        if frame is None:
            return of_head(between.connection, head)
        exchange = of_request(between.connection, head, frame, between.hook.names.context)
        if follows and exchange.request is not None and (body := exchange.request.body):
            set_body(exchange.request, between.session.whole(body))
        return exchange

    def _muted(self, now_ns: int, head: FrameHead, action: Action) -> Action:
        """Let a request wait that goes on before a throttled client may send."""
        between = self._between
        if action is not PASS or now_ns >= between.muted_until:
            return action
        note = InjectionNote(between.connection.client, head.correlation_id, between.muted_by, "held back, throttled")
        return Pass((between.muted_until - now_ns) / SECOND, note.comment())


class ResponseFaults:
    """Decides about responses."""

    def __init__(self, between: _Between) -> None:
        self._between = between

    def decide(self, head: FrameHead, frame: bytes | None) -> Action:
        """As `Decider` says."""
        between = self._between
        waiting = between.waiting.get(head.correlation_id)
        teaches = (between.hook.learns or between.hook.reads_topics) and head.api_key in TEACHING
        if waiting is None and not teaches:
            return PASS
        now_ns = between.hook.clock()
        rules = () if waiting is None else waiting.rules
        if frame is None and (teaches or any(_needs_response(each, result) for each, result in rules)):
            if head.size <= limits.DEFAULT.frame_size:
                return NEED_FRAME
            for each, result in rules:
                each.unable += _needs_response(each, result)
            rules = tuple((each, result) for each, result in rules if not _needs_response(each, result))
        if teaches and frame is not None:
            between.hook.names.learn(head.api_key, head.api_version, frame)
        if waiting is None:
            return PASS
        between.forget(head.correlation_id)
        if waiting.has_fired:
            [(rule, _)] = rules
            return on_response(rule.rule.action, head, frame, between.comment(rule, head)) or PASS
        return self._decided(now_ns, head, frame, waiting.exchange, rules)

    def _decided(self, now_ns: int, head: FrameHead, frame: bytes | None, request: Exchange, rules: _Results) -> Action:
        between = self._between
        exchange = request
        if frame is not None and any(result == OPEN for _, result in rules):
            exchange = with_response(request, frame, between.hook.names.context)
        for rule, result in rules:
            if rule.is_over(now_ns) or (result == OPEN and not rule.matches(exchange)):
                continue
            rule.matched += 1
            if isinstance(rule.rule.action, actions.HoldMessage):
                return between.hold(rule, head, frame) or PASS
            action = on_response(rule.rule.action, head, frame, between.comment(rule, head))
            if action is None:
                rule.unable += 1
            elif rule.triggers.admit(now_ns):
                between.hook.fires(rule, between.connection, head)
                if isinstance(rule.rule.action, actions.ThrottleFault) and not isinstance(action, Pass):
                    between.muted_until = now_ns + rule.rule.action.ns
                    between.muted_by = f"fault {rule.name}"
                return action
        return PASS


def _needs_request(rule: ArmedRule, result: int, head: FrameHead) -> bool:
    """Whether a rule can't decide, or act, without the whole request."""
    is_of_request = place_of(rule.rule.action, head) is FaultPlace.REQUEST
    return result == OPEN or (is_of_request and needs_frame(rule.rule.action))


def _needs_response(rule: ArmedRule, result: int) -> bool:
    """Whether a rule can't decide, or act, without the whole response."""
    return result == OPEN or needs_frame(rule.rule.action)


def _follows_session(rule: ArmedRule) -> bool:
    """Whether a rule needs the partitions of fetch sessions: to ask for them, or to answer for them."""
    return rule.reads_topics or isinstance(rule.rule.action, actions.ErrorFault)
