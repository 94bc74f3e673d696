"""The reports in the README are those that the program prints, and somebody has read them."""

from tools.lab.reports import DOCS, reports


def test_the_reports_on_the_compared_clients_are_the_committed_ones() -> None:
    for name, report in reports().items():
        assert (DOCS / name).read_text(encoding="utf-8") == report, "read it, then run python -m tools.lab.reports"
        assert max(map(len, report.splitlines())) <= 80
