"""Fields as text: a number with its name, an error with its advice."""

from dissector.capture_session import Capture, Progress
from dissector.protocol.schema.errors import advice
from tests.conftest import PCAPS
from tui.labels import field_label, inspector_text, progress_words


def test_a_number_has_its_name_and_an_error_its_advice_below() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read():
            pass
        refused = next(e for e in capture.exchanges() if "MEMBER_ID_REQUIRED" in e.row.info)
    assert refused.request is not None
    assert refused.response is not None
    key = refused.request.tree.find("header.request_api_key")
    code = refused.response.tree.find("body.error_code")
    assert key is not None
    assert code is not None
    assert "request_api_key 11 (JoinGroup)" in field_label(key).plain
    assert "error_code 79 (MEMBER_ID_REQUIRED)" in field_label(code).plain
    assert advice(79) not in field_label(code).plain
    assert advice(79) in inspector_text(code, refused.response, "response")[0].plain


def test_progress_is_a_percentage_or_the_size_read_so_far_if_the_total_is_unknown() -> None:
    assert progress_words(Progress(25, 100, 0, 0), done=False).endswith("○ 25%")
    assert progress_words(Progress(0, 0, 0, 0), done=False) == "○ waiting"
    assert "%" not in progress_words(Progress(4_096, 0, 1, 0), done=False)
    assert progress_words(Progress(4_096, 0, 1, 0), done=True) == "● 100%"
