"""Messages that wait on their way until a person decides about them."""

from dissector.proxy_server.intercept.editing import EditError, editable_text, edited_frame, message_text
from dissector.proxy_server.intercept.rules import InterceptRule, read_intercept

__all__ = ["EditError", "InterceptRule", "editable_text", "edited_frame", "message_text", "read_intercept"]
