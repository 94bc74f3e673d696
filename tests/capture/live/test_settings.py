"""Settings reach the capture process unchanged; what `-b` means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError
from dissector.capture.live import CaptureSettings, RingSettings

RINGS = st.none() | st.builds(RingSettings, *[st.integers(0, 10**9)] * 3)


@pytest.mark.slow
@given(
    st.builds(
        CaptureSettings,
        st.text(),
        st.lists(st.integers(1, 65535)).map(tuple),
        st.text(),
        st.booleans(),
        st.text(),
        RINGS,
    )
)
def test_it_survives_as_json(wanted: CaptureSettings) -> None:
    assert CaptureSettings.from_json(wanted.as_json()) == wanted


def test_a_ring_is_passed_on_in_dumpcap_s_words() -> None:
    assert RingSettings.parse(["filesize:1000", "files:5"]) == RingSettings(kilobytes=1000, files=5)
    assert RingSettings.parse(["duration:60"]) == RingSettings(seconds=60)
    for words in (["files:5"], ["filesize:0"], ["filesize:1", "files:1"], ["packets:5"], ["filesize"]):
        with pytest.raises(CaptureError, match="-b"):
            RingSettings.parse(words)


def test_the_filter_is_worded_for_people_and_for_libpcap() -> None:
    by_ports = CaptureSettings("lo", (9092, 9093), "", promiscuous=False, path="")
    assert by_ports.filter_label == "ports 9092, 9093"
    assert by_ports.filter_expression.startswith("tcp port 9092 or tcp port 9093 or ")
    assert CaptureSettings("lo", (9092,), "host ::1", promiscuous=False, path="").filter_expression == "host ::1"
