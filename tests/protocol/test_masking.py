"""Messages with secrets, cut at each byte, with bytes too many: what is masked, and from where on."""

from dataclasses import replace

import pytest

import dissector
from dissector.core.finding import Finding, Severity
from dissector.protocol import masking
from dissector.protocol.masked_reasons import OVER_LIMIT
from dissector.protocol.masking import MaskedFrame
from dissector.protocol.message import trace
from dissector.protocol.message_layout import PREFIX, SASL_TOKEN, request_layout
from dissector.protocol.schema.loader import api
from tests.cases import cases
from tests.protocol.masking import (
    CUT_LOGIN,
    HEADER,
    OF_SCRAM,
    PASSWORD,
    SALT,
    SCRAM,
    check_masked_from,
    masked,
    with_size,
    words,
)


def test_of_a_message_that_is_understood_the_secret_fields_are_masked() -> None:
    found = masked(SCRAM, OF_SCRAM)
    assert found == MaskedFrame(SCRAM.replace(SALT, b"*" * len(SALT)).replace(PASSWORD, b"*" * len(PASSWORD)), OF_SCRAM)


def test_a_message_with_secrets_is_masked_behind_its_first_count_wherever_it_is_cut() -> None:
    count = HEADER + 1
    check_masked_from(masked(SCRAM, OF_SCRAM, end=HEADER), SCRAM, HEADER)
    for cut in range(count, len(SCRAM)):
        found = masked(SCRAM, OF_SCRAM, end=cut)
        check_masked_from(found, SCRAM, count, OF_SCRAM.body)
        assert words(found)[0].startswith("malformed: ")
        assert f", at offset {cut}; " in words(found)[0] or "runs past the end, at offset" in words(found)[0]
        if cut > count:
            check_masked_from(masked(SCRAM[:cut], OF_SCRAM, size=len(SCRAM)), SCRAM[:cut], count, OF_SCRAM.body)
    check_masked_from(masked(SCRAM, OF_SCRAM, size=len(SCRAM) + 1), SCRAM, count, OF_SCRAM.body)
    found = masked(SCRAM[:HEADER], OF_SCRAM, size=len(SCRAM))
    assert (found.data, found.layout.body, found.layout.masked_from) == (SCRAM[:HEADER], None, None)


@cases(("more", "reason"), [
    (b"x", "trailing-bytes: 1 byte after the last field, at offset 65"),
    (b"", "malformed: salted_password: length 15 runs past the end, at offset 47; 15 bytes could not be read"),
])  # fmt: skip
def test_of_a_message_with_secrets_that_does_not_end_with_its_fields_the_reason_is_shown(
    more: bytes, reason: str
) -> None:
    data = with_size(SCRAM, more) if more else with_size(SCRAM[:-3])
    found = masked(data, OF_SCRAM)
    check_masked_from(found, data, HEADER + 1, OF_SCRAM.body)
    assert words(found)[:-1] == [reason]
    assert found.layout.header == OF_SCRAM.header


def test_more_fields_than_a_message_may_have_are_masked_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Finding(OVER_LIMIT, Severity.WARNING, "more than 1,000,000 fields")
    monkeypatch.setattr(masking, "trace", lambda *args, **kinds: replace(trace(*args, **kinds), findings=[over]))
    found = masked(SCRAM, OF_SCRAM)
    check_masked_from(found, SCRAM, HEADER + 1, OF_SCRAM.body)
    assert words(found)[:-1] == ["over-limit: more than 1,000,000 fields"]


def test_a_text_that_no_client_sends_hides_a_message_with_secrets() -> None:
    data = SCRAM.replace(b"ann", b"a\nn")
    check_masked_from(masked(data, OF_SCRAM), data, HEADER)


def test_what_has_no_bytes_behind_its_header_is_no_token_any_more() -> None:
    for data in (b"", SCRAM[:PREFIX]):
        found = masked(data, SASL_TOKEN, size=9)
        assert (found.data, found.layout) == (data, SASL_TOKEN._replace(token=False))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_cut_login_whose_api_is_damaged_shows_less_than_six_bytes_of_its_token(version: int) -> None:
    """Whatever API and version its header has by then, and wherever it is cut."""
    secret = b"2g1Sf5%hunter2-hunter2"
    login = dissector.encode_request("SaslAuthenticate", version, {"auth_bytes": secret}, client_id="fuzz")
    seen = [secret[at : at + 6] for at in range(len(secret) - 5)]
    for other in range(93):
        known = api(other)
        for number in range(known.versions.low, known.versions.high + 1) if known and other != 36 else ():
            damaged = login[:PREFIX] + other.to_bytes(2, "big") + number.to_bytes(2, "big") + login[PREFIX + 4 :]
            layout = request_layout(other, number)
            for size in (len(login) - 1, len(login) - len(secret) // 2):
                found = masked(damaged[:size], layout, CUT_LOGIN, size=len(login))
                assert not [each for each in seen if each in found.data], (other, number, size)
