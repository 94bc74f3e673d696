"""The page of clients says what the recordings show."""

import pytest

from tools.lab.survey.clients import CLIENTS, SurveyedClient
from tools.lab.survey.facts import NOTHING, cell, interval
from tools.lab.survey.page import HTML, MARKDOWN, Page, build_page, html, markdown
from tools.lab.survey.recording import read_recording
from tools.lab.survey.recording_files import recording_path

QUICK = "kafka-go"
"""It lacks two scenarios and breaks a rule."""


def rows(page: str, client: SurveyedClient) -> list[str]:
    """The lines about a client."""
    names = (f"| {client.title} |", f"| [{client.title}](")
    return [line for line in page.splitlines() if line.startswith(names)]


@pytest.fixture(scope="module")
def quick() -> Page:
    [client] = (client for client in CLIENTS if client.name == QUICK)
    return build_page([client])


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_lines_of_a_client_are_those_of_its_recordings(quick: Page) -> None:
    [client] = (client for client in CLIENTS if client.name == QUICK)
    committed = MARKDOWN.read_text(encoding="utf-8")
    assert rows(committed, client) == rows(markdown(quick), client)
    assert len(rows(committed, client)) >= 15


@pytest.mark.exhaustive
def test_the_pages_are_those_of_the_recordings() -> None:
    page = build_page()
    assert MARKDOWN.read_text(encoding="utf-8") == markdown(page)
    assert HTML.read_text(encoding="utf-8") == html(page)


@pytest.mark.long
def test_every_cell_that_says_something_names_its_exchange(quick: Page) -> None:
    [client] = (client for client in CLIENTS if client.name == QUICK)
    unproved = {"none", NOTHING, "", "does not ask", "never", "not recorded", *client.cannot.values()}
    for table in quick.tables[1:-1]:
        for _, path, proofs in table.rows:
            assert path or proofs[0].text in unproved
            assert {proof.text for proof in proofs if not proof.number} <= unproved


def test_the_interval_of_heartbeats_spans_no_rebalance() -> None:
    """librdkafka's heartbeat #49 was answered with REBALANCE_IN_PROGRESS: #22 to #70, 6 s apart, is no interval."""
    with read_recording(recording_path("librdkafka-2.16", "group-classic")) as recording:
        found = cell(interval("Heartbeat", ""), recording)
    assert found[:2] == ("3.007 s", 22)


def test_every_file_that_the_page_names_is_there() -> None:
    committed = MARKDOWN.read_text(encoding="utf-8")
    for client in CLIENTS:
        path = recording_path(client.name, "plain")
        assert path.exists()
        assert f"](../pcaps/clients/{client.name}/{path.name})" in committed


def test_the_page_of_html_is_one_file() -> None:
    text = HTML.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "prefers-color-scheme:dark" in text
