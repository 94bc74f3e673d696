"""What each action of a rule does to a request or a response, as the actions of `hooks`.

A new action has its place here: with which frame it takes place, whether it needs that frame, what becomes of it.
"""

from enum import Enum

from dissector.core.times import SECOND
from dissector.exchange.model import Exchange
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message import read
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.proxy_server.faults import actions
from dissector.proxy_server.faults.edits import corrupted, offering, throttled, with_error
from dissector.proxy_server.faults.error_responses import error_response
from dissector.proxy_server.hooks import Action, Answer, Close, Drop, FrameHead, Pass, Replace


class FaultPlace(Enum):
    """The frame with which an action takes place."""

    NOWHERE = 0
    """The API or the request has no such frame."""
    REQUEST = 1
    RESPONSE = 2


def place_of(action: actions.FaultAction, head: FrameHead) -> FaultPlace:
    """Return where an action takes place, by the head of the request."""
    with_response = FaultPlace.RESPONSE if head.has_response else FaultPlace.NOWHERE
    match action:
        case actions.DelayFault() | actions.CloseFault(after=True):
            return FaultPlace.RESPONSE if head.has_response else FaultPlace.REQUEST
        case actions.ErrorFault(acted=acted):
            return with_response if acted or not head.has_response else FaultPlace.REQUEST
        case actions.DropFault(after=True) | actions.ThrottleFault() | actions.HoldMessage(of_response=True):
            return with_response
        case actions.OfferFault():
            return with_response if head.api_key == ApiKey.API_VERSIONS else FaultPlace.NOWHERE
        case actions.CorruptFault():
            known = api(head.api_key)
            if known is None:
                return FaultPlace.NOWHERE
            if known.request in RECORDS_FIELDS:
                return FaultPlace.REQUEST
            return with_response if known.response in RECORDS_FIELDS else FaultPlace.NOWHERE
    return FaultPlace.REQUEST


def needs_frame(action: actions.FaultAction) -> bool:
    """Return whether an action needs the whole frame."""
    whole = actions.ErrorFault | actions.ThrottleFault | actions.OfferFault | actions.CorruptFault | actions.HoldMessage
    return isinstance(action, whole)


def on_request(
    action: actions.FaultAction, head: FrameHead, frame: bytes | None, exchange: Exchange, comment: str
) -> Action | None:
    """Return what becomes of a request; None if the action can't be carried out on it. `frame` is there if the action
    needs it, and `exchange` then has the request."""
    match action:
        case actions.DelayFault(ns=ns):
            return Pass(ns / SECOND, comment)
        case actions.SlowFault(rate=rate):
            return Pass(head.size / rate, comment)
        case actions.CloseFault(after=after):
            return Close(comment, forward=after)
        case actions.DropFault():
            return Drop(comment)
        case actions.ErrorFault(code=code) if frame is not None and exchange.request is not None:
            body = exchange.request.body
            made = error_response(head.api_key, head.api_version, head.correlation_id, body, code)
            return None if made is None else Answer(made, comment)
        case actions.CorruptFault() if frame is not None:
            changed = corrupted(frame, request_layout(head.api_key, head.api_version, frame))
            return None if changed is None else Replace(changed, comment)
    return None


def on_response(action: actions.FaultAction, head: FrameHead, frame: bytes | None, comment: str) -> Action | None:
    """Return what becomes of a response; None if the action can't be carried out on it. `head` has the API and the
    version of the request."""
    match action:
        case actions.DelayFault(ns=ns):
            return Pass(ns / SECOND, comment)
        case actions.SlowFault(rate=rate):
            return Pass(head.size / rate, comment)
        case actions.CloseFault():
            return Close(comment)
        case actions.DropFault():
            return Drop(comment)
    if frame is None:
        return None
    layout = response_layout(head.api_key, head.api_version, frame)
    changed: bytes | None = None
    match action:
        case actions.ErrorFault(code=code):
            changed = with_error(frame, layout, code)
        case actions.ThrottleFault(ns=ns):
            changed = throttled(frame, layout, ns)
            if changed is None and not read(frame, layout).rest:  # an old version: brokers kept the response back then
                return Pass(ns / SECOND, comment)
        case actions.OfferFault(newest=newest):
            changed = offering(frame, layout, newest)
        case actions.CorruptFault():
            changed = corrupted(frame, layout)
    return None if changed is None else Replace(changed, comment)
