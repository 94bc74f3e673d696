"""The forms in which people paste bytes: one entry each. What a form finds is arranged and judged like all others.

The rule: the form is taken in whose reading most bytes are messages of Kafka or packets, each byte counted by how well
its message reads; of equal ones the first in this table.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from dissector.pasted.escapes import string_literals
from dissector.pasted.numbers import hex_lists, indexed_numbers, number_lists, quoted_number_lists
from dissector.pasted.pieces import Piece
from dissector.pasted.plain_text import Lines
from dissector.pasted.printed_packets import printed_frames, printed_payloads
from dissector.pasted.rows import dumps
from dissector.pasted.words import (
    annotated_words,
    base64_words,
    caret_words,
    digit_words,
    entity_words,
    hex_words,
    marked_words,
    percent_words,
)


class Recognizer(NamedTuple):
    """A form, and what finds its pieces."""

    form: str
    find: Callable[[Lines], list[Piece]]
    may_swap: bool = False
    """Whether numbers of several bytes may be little-endian ones, as `hexdump`, `od -x` and `gdb` print them."""
    has_rows: bool = False
    """Whether what it finds of more than one line is no form without rows."""
    is_loose: bool = False
    """Whether it would find something in the rows of dumps."""
    is_decisive: bool = False
    """Whether nothing else is looked for where it finds packets or messages."""
    by_size: bool = True
    """Whether sizes in the bytes are enough to believe it."""


RECOGNIZERS: Final = (
    Recognizer("packets printed by tshark", printed_frames, is_decisive=True),
    Recognizer("payloads printed by tshark", printed_payloads, is_decisive=True),
    Recognizer("hex dump", dumps, may_swap=True, has_rows=True),
    Recognizer("escaped string", string_literals),
    Recognizer("escaped string", partial(string_literals, wide=True)),
    Recognizer("escaped string", partial(string_literals, narrow=True)),
    Recognizer("escaped string", partial(string_literals, twice=True)),
    Recognizer("escaped string", partial(string_literals, zeros=True)),
    Recognizer("escaped string", partial(string_literals, decimal=True)),
    Recognizer("list of numbers with indexes", indexed_numbers, is_loose=True, by_size=False),
    Recognizer("list of numbers", number_lists, is_loose=True, by_size=False),
    Recognizer("list of numbers", partial(number_lists, has_comments=False), is_loose=True, by_size=False),
    Recognizer("list of numbers in quotes", quoted_number_lists, is_loose=True, by_size=False),
    Recognizer("hex", hex_words, is_loose=True),
    Recognizer("hex with marks", marked_words, is_loose=True, by_size=False),
    Recognizer("list of hex numbers", hex_lists, is_loose=True, by_size=False),
    Recognizer("hex with words", annotated_words, is_loose=True, by_size=False),
    Recognizer("digits", digit_words, is_loose=True, by_size=False),
    Recognizer("base64", base64_words, is_loose=True, by_size=False),
    Recognizer("percent-encoded bytes", percent_words, by_size=False),
    Recognizer("characters of XML", entity_words, by_size=False),
    Recognizer("caret notation", caret_words, by_size=False),
)
FORMS: Final = (
    "dumps of xxd, hexdump, od, tcpdump, tshark, Wireshark, netty and debuggers, hex with or without separators, "
    "lists of numbers, escaped strings, base64"
)
"""The forms, in the words of an error."""
