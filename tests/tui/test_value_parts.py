"""What a field opens to besides its fields: members of a JSON text with their bytes, lines of a long text; where the
records of a Produce went."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.api.messages import encode_request
from dissector.capture_session import Capture
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.tree import Node
from dissector.records.produced_offsets import produced_offsets
from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request
from tests.tui.main_driver import JAVA, Screen, opened
from tui.exchange_model import ExchangeModel
from tui.labels import field_label
from tui.value_parts import JSON_VALUE, MOST_TEXT, json_nodes, text_lines

ORDERS = str(PCAPS / "records/orders.pcapng")
VALUE = "body.topic_data[0].partition_data[0].records[0].records[0].value"


@pytest.mark.long
async def test_a_record_in_json_is_a_tree_and_its_members_lead_to_their_bytes_and_back(tmp_path: Path) -> None:
    async with opened(ORDERS) as screen:
        await screen.press("4", "5", "G")
        before = screen.main.model.traced
        assert before is not None
        fields = [node.path for node in before.message.tree.walk()]
        await to(screen, VALUE)
        assert "id 15" not in shown(screen), "it is folded at first"
        await screen.press("enter", "j", "enter", "j", "j")
        assert screen.path == f"{VALUE}.(json).order.lines"
        assert screen.main.model.chosen_bytes == b'[{"sku": "teapot", "count": 3}]'
        assert "id 15" in shown(screen)
        source = screen.main.model.source
        assert source is not None
        screen.bytes.focus()
        screen.bytes._go(source.data.index(b'"teapot"') + 2)
        await screen.settle()
        assert screen.path == f"{VALUE}.(json).order.lines[0].sku", "and it is open"
        assert 'sku "teapot"' in shown(screen)
        assert "records.batches.records.value (json)" in screen.text("#inspector")
        screen.fields.focus()
        await screen.press("y", "v", "c", "a")
        assert screen.pilot.app.clipboard == "teapot"
        assert "select a field first" in screen.notifications()[-1]
        assert screen.main.filter.text == "record.value.order.lines.sku == teapot"
        assert 44 in [screen.main.view.number(n) for n in range(len(screen.main.view))]
        assert [node.path for node in before.message.tree.walk()] == fields, "the message has no such fields"


async def to(screen: Screen, path: str) -> None:
    """Select a field, in the tree."""
    traced = screen.main.model.traced
    assert traced is not None
    node = traced.message.tree.find(path)
    assert node is not None
    screen.main.choose_field(node)
    screen.fields.focus()
    await screen.settle()


def shown(screen: Screen) -> str:
    """The lines of the fields."""
    return "\n".join(strip.text for strip in screen.fields.render_lines(screen.fields.outer_size.region))


@pytest.mark.long
async def test_a_long_text_opens_to_lines_that_follow_the_width(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(30)) + " [/bold]\x1b[31m"
    turns = [Turn(True, request(1, client_id=words.encode()))]
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        await to(screen, "header.client_id")
        assert "word29" not in shown(screen)
        await screen.press("enter", "j")
        assert screen.path == "header.client_id", "a line of it is it"
        for width in (120, 80):
            await screen.resize((width, 40))
            assert words.replace("\x1b", "␛").replace(" ", "") in "".join(shown(screen).split())
        await screen.press("h", "enter")
        assert "word29" not in shown(screen)


def leaves(path: str) -> Iterator[tuple[Node, ExchangeModel]]:
    with Capture([path]) as capture:
        model = ExchangeModel(capture)
        for number in range(len(list(capture.exchanges()))):
            model.choose(number)
            for side in ("request", "response"):
                if model.turn(side) and model.traced is not None:
                    for node in model.traced.message.tree.walk():
                        if not node.children:
                            yield node, model


@pytest.mark.long
def test_members_are_written_where_they_say() -> None:
    count = 0
    for node, model in leaves(ORDERS):
        assert model.traced is not None
        data = model.traced.message.sources[node.source].data
        for top in json_nodes(node, model.traced.message):
            for each in top.walk():
                count += 1
                assert node.start <= each.start < each.end <= node.end
                assert each.type == JSON_VALUE
                if isinstance(each.value, int) and not isinstance(each.value, bool):
                    assert data[each.start : each.end] == str(each.value).encode()
    assert count > 20


def test_members_of_a_record_show_no_password_and_lead_to_none(tmp_path: Path) -> None:
    secret = b"hUnTeR2hUnTeR2"
    value = b'{"properties":{"connection.password":"' + secret + b'","topics":"orders"}}'
    records = batch_bytes({"records": [{"value": value}]})
    body = {
        "acks": -1,
        "timeout_ms": 1,
        "topic_data": [{"name": "settings", "partition_data": [{"index": 0, "records": records}]}],
    }
    turns = [Turn(True, encode_request("Produce", 9, body))]
    with Capture([capture_of(tmp_path, conversation(turns))]) as capture:
        list(capture.read())
        model = ExchangeModel(capture)
        model.choose(0)
        traced = model.traced
        assert traced is not None
        node = traced.message.tree.find(VALUE)
        assert node is not None
        [properties] = traced.parts(node)
        password, topics = properties.children
        assert (password.name, topics.value) == ("connection.password", "orders")
        assert secret.decode() not in str(password.value)
        for each in (node, properties, password):
            model.node = each
            assert secret not in model.chosen_bytes


def test_masked_and_short_texts_do_not_open() -> None:
    for value, secret in (('{"a": 1}', (0, 3)), ("a" * 48, None), ("{}{", None)):
        node = Node("name", "body.name", "STRING", 0, len(value) + 2, value, secret=secret)
        assert text_lines(node, 40) == []
    long = Node("name", "body.name", "STRING", 0, MOST_TEXT + 3, "a" * (MOST_TEXT + 1))
    assert text_lines(long, 40)[-1].text == "… 1 more characters: y v copies the value"
    two = Node("value", "body.value", "BYTES", 0, 60, b"one line\nand " + b"x" * 40, note='"one line')
    assert [line.text for line in text_lines(two, 44)] == ["one line", "and " + "x" * 40]


@pytest.mark.slow
def test_records_of_a_produce_have_the_offsets_that_the_response_gives_them() -> None:
    with Capture([JAVA]) as capture:
        list(capture.exchanges())
        model = ExchangeModel(capture)
        model.choose(13)
        assert model.traced is not None
        found = {}
        for node in model.traced.message.tree.walk():
            offset = model.traced.log_offset(node)
            if offset is not None:
                found[node.path] = offset
                assert f", {offset} in the log" in field_label(node, None, offset).plain
        topic = "body.topic_data[0].partition_data"
        assert found[f"{topic}[0].records[0].records[0]"] == 11
        assert found[f"{topic}[0].records[0].records[2]"] == 13
        assert found[f"{topic}[1].records[0].records[0]"] == 9
        assert model.flip()
        assert model.traced is not None
        assert {model.traced.log_offset(node) for node in model.traced.message.tree.walk()} == {None}


@pytest.mark.long
@pytest.mark.slow
async def test_the_list_of_records_says_where_a_produced_one_went() -> None:
    async with opened(JAVA) as screen:
        await screen.press("1", "4", "G", "R")
        await screen.until(lambda: "Produce 14 · offset 11 in the log" in screen.lines())


def test_of_refused_records_and_those_without_a_response_no_offset_is_known() -> None:
    with Capture([str(PCAPS / "trouble-error-storm.pcapng")]) as capture:
        refused = [each for each in capture.exchanges() if each.row.api == "Produce"]
        assert refused
        assert [produced_offsets(each) for each in refused] == [{}] * len(refused)
    with Capture([str(PCAPS / "librdkafka-acks0.pcapng")]) as capture:
        unanswered = [each for each in capture.exchanges() if each.row.api == "Produce"]
        assert unanswered
        assert {len(produced_offsets(each)) for each in unanswered} == {0}
