"""The examples in the documentation of the API run and give what they say."""

import doctest
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

import dissector
from dissector.analysis import outcomes
from dissector.analysis.conformance import check
from dissector.api import capture, comparing, exchange, faults, live_traffic, messages, opening, records
from dissector.capture import errors as capture_errors
from dissector.core import finding
from dissector.exchange import model
from dissector.filter import errors as filter_errors
from dissector.protocol import primitives, tree, wire
from dissector.proxy_server.faults import errors as fault_errors
from tests.capture.live.loopback import needs_rights
from tests.conftest import PCAPS

MODULES = (
    capture, comparing, exchange, faults, fault_errors, pytest.param(live_traffic, marks=needs_rights), messages,
    opening, records,
    capture_errors, check, finding, outcomes, model, filter_errors, primitives, tree, wire,
)  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[dissector.Capture]:
    monkeypatch.chdir(PCAPS.parent)
    with dissector.open("pcaps/java.pcapng") as made:
        yield made


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_give_what_they_say(module: ModuleType, opened: dissector.Capture) -> None:
    for test in doctest.DocTestFinder().find(module, globs={"dissector": dissector, "capture": opened}):
        report: list[str] = []
        failed, _ = doctest.DocTestRunner().run(test, out=report.append)
        assert not failed, "".join(report)


def test_each_public_name_has_an_example() -> None:
    of_fixtures = {
        "KafkaCapture",
        "KafkaProxy",
        "Wire",
        "__version__",
    }  # their examples are whole tests, in the documentation
    for name in set(dissector.__all__) - of_fixtures:
        documented = getattr(dissector, name)
        assert ">>> " in (inspect.getdoc(documented) or ""), name
