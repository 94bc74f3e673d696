"""Builds packets, pcapng files and transcripts from what two ends send each other: the way back to a capture."""

from dissector.conversation.packets import packets
from dissector.conversation.pcapng import Packet, pcapng
from dissector.conversation.turns import Conversation, End, Turn

__all__ = ["Conversation", "End", "Packet", "Turn", "packets", "pcapng"]
