"""What detectors read of many messages at once is what decoding each gives."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from dissector import encode_request
from dissector.capture_session import Capture
from dissector.core.text import endpoint_name
from dissector.findings.framework import advertised_brokers
from dissector.findings.framework.advertised_brokers import AdvertisedBrokers
from dissector.findings.framework.fitting_requests import FittingRequests, message_faults
from dissector.protocol.schema.api_keys import ApiKey
from tests.conftest import BUNDLED, PCAPS
from tests.traffic import Turn, capture_of, conversation


def opened(path: Path) -> Capture:
    capture = Capture([str(path)])
    for _ in capture.read():
        pass
    return capture


def check_brokers(capture: Capture) -> int:
    """Hold the brokers of all Metadata responses against their bodies; return how many responses there are."""
    rows = np.array([each.row.number - 1 for each in capture.exchanges("api == Metadata") if each.response], np.int64)
    found = AdvertisedBrokers(capture.pipeline.indexer, capture.pipeline.store).of(rows)
    for brokers, exchange in zip(found, capture.at(rows), strict=True):
        assert exchange.response is not None
        body = {} if exchange.response.rest else exchange.response.body
        ends = [(each["host"], each["port"]) for each in cast(list[dict[str, object]], body.get("brokers") or [])]
        assert [(each.host, each.address) for each in brokers] == [(h, endpoint_name(h, p)) for h, p in ends]
    return len(rows)


@pytest.mark.parametrize("path", BUNDLED)
def test_brokers_are_those_of_the_bodies(path: Path) -> None:
    check_brokers(opened(path))


def test_lists_of_brokers_that_are_forgotten_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advertised_brokers, "MOST_LISTS", 0)
    capture = opened(PCAPS / "two-brokers.pcapng")
    assert check_brokers(capture) > 2
    reader = AdvertisedBrokers(capture.pipeline.indexer, capture.pipeline.store)
    rows = np.flatnonzero(capture.pipeline.indexer.table.api_key.values == ApiKey.METADATA)[:1]
    assert reader.of(rows) == reader.of(rows)


@pytest.mark.parametrize("path", BUNDLED)
def test_requests_that_fit_have_no_faults(path: Path) -> None:
    capture = opened(path)
    rows = np.arange(len(capture))
    fit = FittingRequests(capture.pipeline.indexer, capture.pipeline.store).of(rows).tolist()
    for fits, exchange in zip(fit, capture.at(rows), strict=True):
        assert not (fits and (exchange.request is None or message_faults(exchange.request)))


def test_most_requests_fit_and_those_with_faults_do_not(tmp_path: Path) -> None:
    capture = opened(PCAPS / "java-admin.pcapng")
    fit = FittingRequests(capture.pipeline.indexer, capture.pipeline.store).of(np.arange(len(capture)))
    assert fit.mean() > 0.95
    whole = bytes(encode_request("Metadata", 12, {"topics": None}, correlation_id=7, client_id="tests"))
    misplaced = whole[:-1] + b"\x01\x00\x01\x00"  # a tag that no version has
    frames = [whole, whole[:-1], whole + b"\x00", misplaced]
    turns = [Turn(True, (len(each) - 4).to_bytes(4, "big") + each[4:]) for each in frames]
    capture = opened(tmp_path / capture_of(tmp_path, conversation(turns)))
    fit = FittingRequests(capture.pipeline.indexer, capture.pipeline.store).of(np.arange(len(capture)))
    assert fit.tolist() == [True, False, False, False]


def test_numbers_are_there_in_requests_that_fit(tmp_path: Path) -> None:
    whole = bytes(encode_request("Fetch", 11, {"max_wait_ms": 7, "topics": []}, correlation_id=1, client_id="tests"))
    frames = [whole, whole[:-1], whole + b"\x00"]
    turns = [Turn(True, (len(each) - 4).to_bytes(4, "big") + each[4:]) for each in frames]
    capture = opened(tmp_path / capture_of(tmp_path, conversation(turns)))
    requests = FittingRequests(capture.pipeline.indexer, capture.pipeline.store)
    values, is_there = requests.numbers(np.arange(len(capture)), "max_wait_ms")
    assert (values[0], is_there.tolist()) == (7, [True, False, False])
