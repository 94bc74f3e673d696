"""Who waits for whom where a capture comes in portions: notes behind a request that may still be answered wait."""

import pickle
from pathlib import Path

import pytest

from dissector.capture_session.tally import PartitionTally
from dissector.core.batches import NEVER
from dissector.findings.framework.examination_queue import CLOSED_FOR_NS, MAX_OVERTAKES, MAX_WAIT_NS
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.worker_processes import ALL_PACKETS, known_by_itself
from dissector.tables.data_files import TALLIES, Output
from tests.capture_session.test_incremental import packets
from tests.findings.conversations import START, Talk, fetch, heartbeat, written
from tests.pipeline.test_micro_batch import Dealt, origins_of


def waits_from(folder: Path, *talks: Talk, now_ns: int = START) -> int:
    """The packet from which on notes wait, after a portion that has all of these connections."""
    path = Path(written(folder, *talks))
    origins, blocks = origins_of([scan_file(str(path))]), packets(path)
    job = Dealt([], origins, WriteOptions(), Output("", "", 1), b"", folder / "before", folder, now_ns, {0: blocks})
    made = job.rows(known_by_itself, ALL_PACKETS)
    [pickled] = [row["tally"] for table, row in made if table == TALLIES]
    part = pickle.loads(pickled)
    assert isinstance(part, PartitionTally)
    return part.oldest_pending


def hanging(exchange_count: int) -> Talk:
    """A request without an answer, and others behind it that have theirs."""
    talk = Talk()
    heartbeat(talk, 0)
    talk.ask(10, "Metadata", 12, {"topics": None})
    for number in range(exchange_count):
        heartbeat(talk, 20 + 2 * number)
    return talk


def test_nothing_is_pending_where_each_request_has_a_response(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0)
    fetch(talk, 5, 0, 10, took=400)
    assert waits_from(tmp_path, talk) == NEVER


@pytest.mark.long
@pytest.mark.slow
def test_a_request_that_may_get_a_response_is_pending(tmp_path: Path) -> None:
    other = Talk(2)
    heartbeat(other, 5)
    waits = waits_from(tmp_path, hanging(MAX_OVERTAKES - 1), other)
    assert 0 < waits < NEVER
    assert waits == waits_from(tmp_path, hanging(0), other), "it is the request's own packet"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_request_that_later_responses_skipped_is_not_pending(tmp_path: Path) -> None:
    assert waits_from(tmp_path, hanging(MAX_OVERTAKES)) == NEVER


def test_a_request_that_has_waited_too_long_is_not_pending(tmp_path: Path) -> None:
    late = START + 11_000_000 + MAX_WAIT_NS
    assert waits_from(tmp_path, hanging(0), now_ns=late) == NEVER
    assert waits_from(tmp_path, hanging(0), now_ns=late - 2_000_000) < NEVER


def test_nor_one_whose_connection_was_closed_a_while_ago(tmp_path: Path) -> None:
    talk = Talk(closed=True)
    talk.ask(0, "Metadata", 12, {"topics": None})
    assert waits_from(tmp_path, talk) < NEVER
    assert waits_from(tmp_path, talk, now_ns=START + 2 * CLOSED_FOR_NS) == NEVER


def test_a_request_of_which_the_end_is_still_to_come_is_waited_for(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0)
    whole = waits_from(tmp_path, talk)
    talk.ask(10, "Metadata", 12, {"topics": None})
    talk.turns[-1] = talk.turns[-1]._replace(data=talk.turns[-1].data[:-3])
    assert whole == NEVER > waits_from(tmp_path, talk)
