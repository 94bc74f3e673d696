"""The page of clients through the proxy says what was kept of the last runs."""

import json
from typing import Final

import pytest

from tools.lab.proxied.aftermath import aftermath
from tools.lab.proxied.fault_recordings import FAULTED, fault_recording
from tools.lab.proxied.fault_rules import FAULTS
from tools.lab.proxied.faults import refusal
from tools.lab.proxied.page import MARKDOWN, page, recorded
from tools.lab.proxied.results import Outcome, read_results
from tools.lab.proxied.ways import WAYS
from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.recording_files import LARGEST, provenance_path

LEAST: Final = 4
"""Clients of which each login at three brokers was run."""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_page_is_that_of_the_recordings() -> None:
    assert MARKDOWN.read_text(encoding="utf-8") == page()


def test_the_page_has_the_results_of_the_last_runs() -> None:
    assert MARKDOWN.read_text(encoding="utf-8").startswith(recorded())


def test_every_client_met_every_fault_that_it_can() -> None:
    wanted = {fault_recording(client.name, fault.name) for client in CLIENTS for fault in FAULTS
              if not refusal(client, fault)}  # fmt: skip
    found = set(FAULTED.glob("*/*.pcapng.zst"))
    assert found == wanted
    assert max(path.stat().st_size for path in found) < LARGEST
    committed = MARKDOWN.read_text(encoding="utf-8")
    for path in found:
        kept = json.loads(provenance_path(path).read_text("utf-8"))
        assert kept.keys() >= {"fired", "there", "twice", "told", "refused", "seen"}
        assert f"](../pcaps/faulted/{path.parent.name}/{path.name})" in committed


@pytest.mark.long
def test_what_was_injected_is_found_in_the_recordings() -> None:
    for client, fault in (("java-4.3", "leader-moved"), ("librdkafka-2.16", "closed"), ("kafka-go", "dropped")):
        [rule] = [each for each in FAULTS if each.name == fault]
        path = fault_recording(client, fault)
        kept = json.loads(provenance_path(path).read_text("utf-8"))
        assert len(aftermath(path, rule.api).hurt) == kept["fired"] > 0


def test_clients_went_every_way_and_nothing_differed() -> None:
    """Each at one broker, and at three without a login; at three with one at least four."""
    results = read_results()
    every = {client.name for client in CLIENTS}
    for brokers, ways in (("1", WAYS.keys()), ("3", WAYS.keys() - {"both"})):
        assert results[brokers].keys() == ways
        for way, clients in results[brokers].items():
            has_login = brokers == "3" and way not in ("plain", "tls")
            assert (len(clients) >= LEAST and clients.keys() <= every) if has_login else clients.keys() == every
            for name, kept in clients.items():
                assert kept["refusal"] or Outcome(**kept).is_good, (brokers, way, name)
