"""What the API says to mistakes in Python, and how its objects look at a prompt."""

from collections.abc import Callable

import pytest

import dissector
from dissector.samples import FOLDER
from tests.cases import cases
from tests.conftest import PCAPS

JAVA = PCAPS / "java.pcapng"
ACKS, TYPO, API = "acks", "lateny", "Fetch"  # a checker of types would find them
FRAME = dissector.encode_response("Heartbeat", 0, {"error_code": 27}, correlation_id=7)


@cases(
    ("mistake", "kind", "words"),
    [
        (lambda: dissector.open(), TypeError, "open() needs a source: a path, a binary file, bytes, or packets"),
        (lambda: dissector.open(JAVA)[9999], IndexError, "row 9999 of 60: indexes start at 0, numbers at 1"),
        (lambda: dissector.open(JAVA)[-61], IndexError, "row -61 of 60: indexes start at 0, numbers at 1"),
        (
            lambda: dissector.open(JAVA)["Produce"],
            TypeError,
            "rows have indexes from 0; exchanges() takes a filter",
        ),
        (lambda: dissector.open(JAVA)[1.5], TypeError, "capture[1.5]: rows have indexes from 0"),
        (lambda: dissector.Capture(JAVA), TypeError, "a capture is opened with dissector.open, not with Capture"),
        (lambda: dissector.open([JAVA]), TypeError, "open() takes several files as several arguments: open(*paths)"),
        (lambda: dissector.open(JAVA, keylog=5), TypeError, "open(keylog=5): a path is text, or a Path"),
        (lambda: dissector.open(JAVA, keylog=[5]), TypeError, "open(keylog=[5]): a path is text, or a Path"),
        (lambda: dissector.open(JAVA, schemas=5), TypeError, "open(schemas=5): a path is text, or a Path"),
        (lambda: dissector.open(JAVA).stats(by=5), TypeError, "a field is named by text, such as 'api', not 5"),
        (lambda: dissector.open(JAVA).stats(by="toppic"), ValueError, "unknown field 'toppic'; did you mean topic"),
        (lambda: dissector.open(JAVA).to_arrow("recrods"), ValueError, "is not a table; did you mean records"),
        (lambda: dissector.open(JAVA).to_arrow(5), ValueError, "5 is not a table: there are exchanges, records"),
        (lambda: dissector.open(JAVA).check(ignore=5), TypeError, "check(ignore=5): give codes of rules, such as"),
        (lambda: dissector.open(JAVA).check(ignore=["throttle"]), ValueError, "a rule; did you mean throttle-time"),
        (lambda: getattr(dissector.open(JAVA)[0], ACKS), AttributeError, "the value of a field is exchange['acks']"),
        (lambda: getattr(dissector.open(JAVA)[0], TYPO), AttributeError, "the value of a field is exchange['latency']"),
        (lambda: getattr(dissector.open(JAVA)[0], API), AttributeError, "has no attribute 'Fetch'"),
        (lambda: dissector.open(JAVA)[0].request["acks"], TypeError, "in body and header: message.body['acks']"),
        (lambda: dissector.decode_request(5), TypeError, "a frame is bytes, not int"),
        (
            lambda: dissector.encode_request("MetadataRequest", 12, {}),
            dissector.EncodeError,
            "api: no API is called 'MetadataRequest'; did you mean Metadata or UpdateMetadata",
        ),
        (
            lambda: dissector.encode_request("Metadata", 12, {"topics": [{"nme": "orders"}]}),
            dissector.EncodeError,
            "body.topics[0].nme: no such field in this version of MetadataRequestTopic; did you mean name",
        ),
        (lambda: dissector.live(filter=5), TypeError, "a filter is text, such as 'api == Produce', not 5"),
        (lambda: dissector.live(keylog=5), TypeError, "live(keylog=5): a path is text, or a Path"),
        (lambda: dissector.proxy(5), TypeError, "proxy(5): a broker is text, such as 'localhost:9092'"),
        (lambda: dissector.proxy(["b", 5]), TypeError, "proxy(['b', 5]): a broker is text"),
        (lambda: dissector.serve(5), TypeError, "serve(5): give one path, several paths, or pairs of frames"),
        (lambda: dissector.open(JAVA)[0][0], TypeError, "a field is named by text, such as 'latency', not 0"),
        (lambda: dissector.open(JAVA).exchanges(5), TypeError, "a filter is text, such as 'api == Produce', not 5"),
        (
            lambda: dissector.open(JAVA, ports=["9092"]),
            ValueError,
            "open(ports=['9092']): a port is a number",
        ),
        (
            lambda: dissector.open(JAVA, ports=9092.5),
            ValueError,
            "open(ports=9092.5): a port is a number",
        ),
        (lambda: dissector.open(JAVA).held_to(JAVA), ValueError, "java.pcapng is not a baseline: it is not text"),
        (lambda: dissector.live(port="9092"), ValueError, "live(port='9092'): a port is a number from 1 to 65535"),
        (lambda: dissector.live(port=65_536), ValueError, "live(port=65536): a port is a number from 1 to 65535"),
        (lambda: dissector.decode_request(FRAME.hex()), TypeError, "a frame is bytes, not text: bytes.fromhex()"),
        (lambda: dissector.decode_request(b"xx"), ValueError, "2 bytes: a frame has 8 or more"),
        (lambda: dissector.decode_response(FRAME[:7]), ValueError, "7 bytes: a frame has 8 or more"),
        (
            lambda: dissector.encode_request("Metadata", 99, {}),
            dissector.EncodeError,
            "body: Metadata v99 is not known to this release, which has v0-13",
        ),
        (lambda: dissector.decode_response(FRAME, api="Heartbeat"), TypeError, "give both the API and its version"),
        (
            lambda: dissector.decode_response(FRAME, api="Heartbeat", api_key=12, api_version=0),
            TypeError,
            "mean the same",
        ),
        (lambda: dissector.decode_response(FRAME, api="Heartbaet", api_version=0), dissector.EncodeError, "no API"),
    ],
)
def test_a_mistake_gets_words_that_say_what_to_do(
    mistake: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        mistake()
    assert words in str(caught.value)
    assert not str(caught.value).endswith("only the header can be read")


def test_names_that_are_not_loaded_are_listed_too_so_that_python_suggests_them() -> None:
    assert {*dissector.__all__} <= {*dir(dissector)}
    with pytest.raises(AttributeError, match="no attribute 'opne'") as caught:
        dissector.opne(JAVA)
    assert (caught.value.name, caught.value.obj) == ("opne", dissector)


@cases(
    "ask",
    [
        dissector.Capture.exchanges,
        dissector.Capture.records,
        dissector.Capture.stats,
        dissector.Capture.connections,
        dissector.Capture.check,
        dissector.Capture.findings,
        dissector.Capture.to_arrow,
        len,
        lambda capture: capture[0],
    ],
)
def test_a_closed_capture_says_so_at_once(ask: Callable[[dissector.Capture], object]) -> None:
    with dissector.open(JAVA) as capture:
        begun = capture.exchanges()
        first = next(begun)
    for late in (lambda: ask(capture), lambda: next(begun)):
        with pytest.raises(ValueError, match=r"^the capture is closed: use it inside its with statement$"):
            late()
    assert first.request is not None
    assert first.request.body, "what was looked at before stays readable"


def test_the_smallest_frame_is_decoded() -> None:
    assert dissector.decode_response(FRAME[:8]).header["correlation_id"] == 7


def test_a_response_is_decoded_by_the_name_of_its_api() -> None:
    named = dissector.decode_response(FRAME, api="Heartbeat", api_version=0)
    keyed = dissector.decode_response(FRAME, api_key=12, api_version=0)
    assert named.body == keyed.body == {"error_code": 27}


def test_an_unknown_field_gets_the_nearest_names() -> None:
    with dissector.open(JAVA) as capture, pytest.raises(KeyError, match=r"did you mean .*acks"):
        next(capture.exchanges("api == Produce"))["ack"]


def test_every_type_that_comes_back_has_a_public_name() -> None:
    with dissector.open(JAVA) as capture:
        exchange, finding = next(capture.findings())
        assert isinstance(capture.check(), dissector.CheckResult)
    assert isinstance(finding.severity, dissector.Severity)
    assert isinstance(exchange.request, dissector.Message)
    assert {"KafkaCapture", "Wire", "RuleOutcome", "__version__"} <= set(dissector.__all__)
    assert all(hasattr(dissector, name) for name in dissector.__all__)
    assert dissector.__version__[0].isdigit()


def test_trees_and_checks_take_a_line_at_a_prompt_and_are_escaped_in_a_notebook() -> None:
    request = dissector.decode_request(dissector.encode_request("Metadata", 1, {"topics": [{"name": "<b>\x1b[1m"}]}))
    by_path = {each.path: each for each in request.tree.walk()}
    assert repr(by_path["body.topics[0].name"]) == r"<body.topics[0].name STRING '<b>\x1b[1m', bytes 18 to 26>"
    assert repr(request.tree) == "<frame STRUCT, bytes 0 to 26>"
    html = request.tree._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    with dissector.open(FOLDER / "mistake.pcapng") as capture:
        result = capture.check()
    assert repr(result).startswith("<check of ")
    assert "\n" not in repr(result)


def test_a_report_in_a_notebook_leaves_the_notebook_its_looks() -> None:
    """A page's style sheet in a cell holds for the whole notebook."""
    with dissector.open(FOLDER / "mistake.pcapng") as capture:
        reports = (capture.check(), dissector.diff(capture, capture))
    for html in (report._repr_html_() for report in reports):
        assert html.startswith("<div>\n<h1>")
        assert html.endswith("</div>")
        assert not {tag for tag in ("<style", "<body", "<head", "<html", "<!DOCTYPE") if tag in html}


def test_a_long_tree_ends_in_an_ellipsis() -> None:
    topics = [{"name": f"t{number}"} for number in range(300)]
    request = dissector.decode_request(dissector.encode_request("Metadata", 1, {"topics": topics}))
    assert request.tree._repr_html_().endswith("…</pre>")
    assert request.tree._repr_html_().count("\n") == 200
