"""What two ends said to each other, made into packets, a pcapng file or a transcript: the way back to a capture."""

from dissector.conversation.packets import packets
from dissector.conversation.pcapng import Packet, pcapng
from dissector.conversation.turns import Conversation, End, Turn

__all__ = ["Conversation", "End", "Packet", "Turn", "packets", "pcapng"]
