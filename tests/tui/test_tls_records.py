"""The TLS records of a message as a source of bytes: parts, fields, packets."""

import pytest

from dissector.capture_session import Capture
from tests.cases import cases
from tests.conftest import PCAPS
from tests.tui.main_driver import opened
from tui.exchange_model import ExchangeModel
from tui.labels import byte_words, bytes_title

JAVA_1_2, JAVA_1_3 = str(PCAPS / "tls/java-1.2-mtls.pcapng"), str(PCAPS / "tls/java-1.3.pcapng")
PRODUCE = 9
"""A row with a request in three records."""


@pytest.mark.long
@pytest.mark.parametrize("path", [JAVA_1_2, JAVA_1_3])
def test_parts_of_records_tile_their_bytes_and_each_byte_of_a_message_is_encrypted_in_one(path: str) -> None:
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        model, seen = ExchangeModel(capture), 0
        for row in range(len(capture)):
            model.choose(row)
            for side in ("request", "response"):
                if not model.turn(side):
                    continue
                assert model.traced is not None
                records = model.traced.records
                assert records is not None
                number, data = records.source.number, records.source.data
                leaves = records.tree.leaves()[number]
                assert [leaf.start for leaf in leaves] == [0, *(leaf.end for leaf in leaves[:-1])]
                assert leaves[-1].end == len(data)
                assert all(model.traced.node_at(number, leaf.start) is leaf for leaf in leaves)
                paddings = {leaf.size for leaf in leaves if leaf.name == "(padding)"}
                assert paddings == ({16} if path == JAVA_1_3 else set())  # the JDK's
                encrypted = [byte for at in range(len(data)) if (byte := records.message_byte(at)) is not None]
                assert encrypted == list(range(len(model.traced.message.data)))
                seen += 1
        assert seen > len(capture)


@cases("path", ["header.client_id", "body.topic_data[0].partition_data[0].records", "size", ""])
def test_a_field_marks_its_bytes_in_its_records(path: str) -> None:
    with Capture([JAVA_1_3]) as capture:
        for _ in capture.read():
            pass
        model = ExchangeModel(capture)
        model.choose(PRODUCE)
        assert model.traced is not None
        model.node = node = model.traced.message.tree.find(path)
        assert node is not None
        assert model.next_source()
        records = model.records
        assert records is not None
        assert model.node is node
        shades = model.shades(0, len(records.source.data))
        marked = [at for at, shade in enumerate(shades) if shade == 0]
        assert [records.message_byte(at) for at in marked] == list(range(node.start, node.end))
        assert model.first_byte == marked[0]
        assert model.chosen_bytes == model.traced.message.data[node.start : node.end]
        around = [each for each in records.tree.children if {*marked} & {*range(each.start, each.end)}]
        assert [at for at, shade in enumerate(shades) if shade is not None] == [
            at for each in around for at in range(each.start, each.end)
        ]


def test_a_decompressed_field_marks_the_records_of_its_section() -> None:
    with Capture([JAVA_1_3]) as capture:
        for _ in capture.read():
            pass
        model = ExchangeModel(capture)
        model.choose(next(row for row in range(len(capture)) if "20 records zstd" in capture.exchange(row).row.info))
        assert model.traced is not None
        tree = model.traced.message.tree
        model.node = next(node for node in tree.walk() if node.source and node.name == "value")
        assert bytes_title(model).endswith("b: 2 others")
        assert model.next_source()
        section = tree.find(next(node.path for node in tree.walk() if node.name == "(compressed)"))
        assert section is not None
        marked = [at for at, shade in enumerate(model.shades(0, 1 << 12)) if shade == 0]
        assert model.records is not None
        assert [model.records.message_byte(at) for at in marked] == list(range(section.start, section.end))
        assert model.next_source()
        assert model.node is not None
        assert (model.source, model.node.source) == (model.traced.sources[0], 0)


@pytest.mark.long
async def test_the_key_for_bytes_shows_the_records_of_the_field_and_their_packets() -> None:
    async with opened(JAVA_1_3) as screen:
        screen.list.cursor = PRODUCE
        await screen.press("enter", "j", "j")
        assert screen.bytes.border_title == "bytes 0x0004–0x0005 · b: TLS records"
        await screen.press("b")
        assert (screen.path, screen.bytes.border_title) == ("header.request_api_key", "TLS record 1 of 3 · packet 93")
        await screen.press("G", "l", "j")  # the records of the tree; the first of them
        assert screen.path == "(record 1)"
        await screen.press("tab", "G")
        assert screen.path == "(record 3).(authentication tag)"
        assert screen.fields.cursor_node is not None
        assert screen.fields.cursor_node.data is screen.main.model.node
        assert screen.bytes.border_title == "TLS record 3 of 3 · packet 95"
        assert "record 3 · authentication tag" in screen.text("#inspector")
        await screen.press("b")
        assert (screen.path, screen.bytes.border_title) == ("size", "bytes 0x0000–0x0003 · b: TLS records")
        await screen.press("j", "r", "b")
        assert screen.bytes.border_title == "TLS record · packet 105"


def test_a_byte_of_ciphertext_says_of_which_field() -> None:
    with Capture([JAVA_1_2]) as capture:
        for _ in capture.read():
            pass
        model = ExchangeModel(capture)
        model.choose(PRODUCE)
        assert model.next_source()
        assert model.source is not None
        data = model.source.data
        assert byte_words(model, data, 4 + 5 + 8) == (
            f"0x0011 {data[17]:#04x} is a byte of request.header.request_api_key, encrypted"
        )
        assert byte_words(model, data, 3) == f"0x0003 {data[3]:#04x}"
