"""Names of secrets in texts: the same as a plain reading finds, in time that grows with the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.embedded.secret_names import assigns_secret, has_user_password

LARGE = 1 << 19
"""Characters for which time that grows with the square would be hours."""
TEXTS = st.text(st.sampled_from("ab:@/, ='_-\n"), max_size=24)


@given(TEXTS)
def test_a_user_with_a_password_is_found_wherever_it_is(text: str) -> None:
    runs = re.split(r"[\s/,]", text)
    assert has_user_password(text) == any(":" in user[:-1] for run in runs for user in run.split("@")[:-1])


@given(TEXTS, st.sampled_from(["password=x", "x.secret : y", '"api_key":1', "token=", "amqp://me:pw@host"]), TEXTS)
def test_what_is_assigned_to_a_secret_name_is_found_among_other_text(before: str, assigned: str, after: str) -> None:
    assert assigns_secret(f"{before} {assigned} {after}")


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", "a'", ":", "a:", "@", "a@", "a ", " ", "=", "a=", ":@", "a:/", "pass"])
def test_no_text_takes_time_that_grows_with_its_square(piece: str) -> None:
    text = piece * (LARGE // len(piece))
    assert not assigns_secret(text)
    assert not has_user_password(text)
