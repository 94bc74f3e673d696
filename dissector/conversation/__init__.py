"""What two ends said to each other, made into packets, a pcapng file or a transcript: the way back to a capture."""

from dissector.conversation.packets import MadePacket, packets
from dissector.conversation.pcapng import pcapng
from dissector.conversation.turns import Conversation, End, Turn

__all__ = ["Conversation", "End", "MadePacket", "Turn", "packets", "pcapng"]
