"""Fields and bytes: each leads to the other; decompressed records; long arrays."""

from pathlib import Path

import pytest

from dissector import encode_request
from dissector.capture_session import Capture
from dissector.protocol.records.batch import Record
from tests.conftest import some_bundled
from tests.frames import response
from tests.protocol.records.test_batch import batch
from tests.traffic import Turn, capture_of, conversation, request
from tests.tui.main_driver import JAVA, opened
from tests.tui.shared_screens import SharedScreens
from tui.exchange_model import ExchangeModel
from tui.labels import field_label
from tui.widgets.bytes_pane import BytesPane


@pytest.mark.long
async def test_a_field_highlights_its_bytes_and_its_ancestors_more_faintly(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("enter", "g", "down", "down")
        assert screen.path == "header.request_api_key"
        assert screen.main.model.shades(0, 10) == [None] * 4 + [0, 0, 1, 1, 1, 1]
        assert "request.header.request_api_key · 18 = ApiVersions · INT16" in screen.text("#inspector")
        assert "versions 0+" in screen.text("#inspector")


@pytest.mark.long
async def test_a_byte_selects_its_field_by_key_and_by_click(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("tab", "tab")
        await screen.press(*["right"] * 8)
        assert screen.path == "header.correlation_id"
        assert screen.fields.cursor_node is not None
        assert screen.fields.cursor_node.data is screen.main.model.node
        assert "i32 " in screen.text("#inspector")
        for x in range(6, 40):
            offset = screen.bytes.offset_at(x, 0)
            if offset == 5:
                await screen.pilot.click(BytesPane, offset=(x + 1, 1))
                break
        await screen.settle()
        assert screen.path == "header.request_api_key"


@pytest.mark.exhaustive
async def test_another_message_keeps_the_field_selected_or_the_nearest_above_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("enter", "g", "j", "j")
        for key, path in (("f8", "header.request_api_key"), ("r", "header"), ("r", "header"), ("f7", "header")):
            await screen.press(key)
            assert screen.path == path
            assert screen.fields.cursor_node is not None
            assert screen.fields.cursor_node.data is screen.main.model.node
        screen.list.focus()
        await screen.press("j")
        assert (screen.path, screen.fields.cursor_node) == ("", None)


@pytest.mark.long
async def test_parts_of_the_encoding_are_hidden_until_they_are_asked_for_or_chosen(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("r")
        assert "(tagged fields) 0" not in screen.lines()
        assert "api_keys [" in screen.lines()
        count = screen.main.model.traced.message.tree.find("body.api_keys.(count)")
        assert count is not None
        array = screen.main.model.traced.message.tree.find("body.api_keys")
        assert array is not None
        assert count.value == sum(child.name.startswith("[") for child in array.children)
        assert count.note == f"encoded {count.value + 1:,}"
        screen.main.choose_field(count)
        screen.main.field_tree.reveal(count)
        await screen.settle()
        assert f"(count) {count.value} (encoded {count.value + 1:,})" in screen.lines()
        assert screen.fields.cursor_node is not None
        assert screen.fields.cursor_node.data is count
        await screen.press("r", "O")
        assert "(tagged fields) 0" in screen.lines()
        await screen.press("O")
        assert "(tagged fields) 0" not in screen.lines()


@pytest.mark.long
async def test_text_stands_before_its_bytes_with_emoji_and_line_breaks_too(tmp_path: Path) -> None:
    value = "👩‍🚀 {\n 1}".encode()
    data = {
        "topic_data": [{"name": "a", "partition_data": [{"records": batch([Record(100, 5_000, b"k", value, [])])}]}]
    }
    turns = [Turn(True, encode_request("Produce", 3, data)), Turn(False, response(0))]
    async with opened(capture_of(tmp_path, conversation(turns)), size=(120, 40)) as screen:
        node = next(n for n in screen.main.model.traced.message.tree.walk() if n.path.endswith("records[0].value"))
        assert field_label(node).plain.startswith('value "👩\\u{200d}🚀 {␊ 1}" (f0 9f 91 a9')


@some_bundled
async def test_every_byte_leads_to_the_leaf_that_claims_it(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        model = ExchangeModel(capture)
        for exchange in capture.exchanges():
            model.choose(exchange.row.number - 1)
            assert model.traced is not None
            for source in model.traced.message.sources:
                for offset in range(0, len(source.data), max(1, len(source.data) // 50)):
                    node = model.traced.node_at(source.number, offset)
                    assert node is not None
                    assert node.start <= offset < node.end
                    assert not [child for child in node.children if child.source == source.number]


@pytest.mark.exhaustive
async def test_decompressed_records_are_another_source_of_bytes(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        model = screen.main.model
        number = next(n for n in range(len(model.capture)) if "gzip" in model.capture.exchange(n).row.info)
        screen.list.cursor = number
        await screen.settle()
        assert model.traced is not None
        record = next(n for n in model.traced.message.tree.walk() if n.source and n.name == "value")
        screen.fields.focus()
        await screen.settle()
        screen.fields.reveal(record)
        await screen.settle()
        assert screen.path == record.path
        assert model.source is model.traced.message.sources[record.source]
        assert "decompressed" in str(screen.bytes.border_title)
        assert "teapot" in screen.lines()
        screen.bytes.focus()
        await screen.press("g")
        assert model.node is not None
        assert model.node.source == record.source


@pytest.mark.long
async def test_long_arrays_open_in_chunks(tmp_path: Path) -> None:
    names = b"".join(b"\x00\x05t%04d" % n for n in range(250))
    turns = [Turn(True, request(1, body=(250).to_bytes(4, "big") + names))]
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        assert screen.main.model.traced is not None
        wanted = screen.main.model.traced.message.tree.find("body.topics[237].name")
        assert wanted is not None
        screen.fields.focus()
        screen.fields.reveal(wanted)
        await screen.settle()
        assert screen.path == "body.topics[237].name"
        assert "t0237" in screen.lines()


@pytest.mark.exhaustive
async def test_every_byte_of_a_line_is_drawn_at_every_width() -> None:
    async with opened(JAVA, size=(60, 30)) as screen:
        for width, count in [(60, 4), (80, 8), (200, 16)]:
            await screen.resize((width, 30))
            assert screen.bytes.per_line == count
            line = screen.bytes.render_line(0).text.rstrip()
            assert line.endswith("···1··········ad"[:count])  # the size, API key 18, version 4, id 0, "ad…"
            assert len(line) <= screen.bytes.scrollable_content_region.width
            assert screen.bytes.offset_at(len(line) - 1, 0) == count - 1
