"""No four bytes of a name are left in what redaction makes of a recording, however it was changed.

`make fuzz FUZZ="--kind redacted"` draws as many as there is time for, and so does `python -m tools.fuzz.redaction_run`,
which changes frames on their own too.
"""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given

from dissector.capture import CaptureError
from dissector.export.redaction import frames
from tests.cases import cases
from tests.conftest import costly
from tests.traffic import seeds
from tools.fuzz.redactions import Letterings, left_in_frames, left_of_names, redaction_file


@pytest.mark.long
@pytest.mark.slow
@costly(2)
@given(chance=seeds)
def test_no_piece_of_a_name_is_left_of_a_changed_recording(
    chance: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data, names = redaction_file(chance)
    path = tmp_path_factory.mktemp("names") / "in.pcap"
    path.write_bytes(data)
    with suppress(CaptureError):  # damage has left nothing of the file
        assert left_of_names(path, names, texts=True) == ""


@costly(2)
@given(chance=seeds)
def test_no_piece_of_a_name_is_left_of_changed_frames(chance: random.Random) -> None:
    assert left_in_frames(chance, 40) == ""


def test_the_search_finds_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_header_end_if_damaged", lambda _traced: None)
    monkeypatch.setattr(frames.Redactor, "_without_remnants", lambda *_: True)
    assert any(left_in_frames(random.Random(seed), 50) for seed in range(8))
    monkeypatch.setattr(frames.Redactor, "text", lambda _self, _leaf, text: text.encode())
    data, names = redaction_file(random.Random(3), "java.pcapng")
    path = tmp_path / "in.pcap"
    path.write_bytes(data)
    assert left_of_names(path, names)


@cases(("content", "piece"), [
    (b"..WXYZ", b"WXYZ"), (b"xyzvw", b"xyzv"), (b"wxy", None), (b"", None), (b"wxy.zvw", None), (b"\xd7xyz", None),
])  # fmt: skip
def test_pieces_are_found_in_any_case(content: bytes, piece: bytes | None) -> None:
    assert Letterings([b"WxyzVw", b"q"]).first_in(content) == piece
