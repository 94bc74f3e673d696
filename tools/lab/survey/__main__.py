"""`python -m tools.lab.survey [CLIENT|SCENARIO…]`: record all, or the named clients in the named scenarios.

Earlier releases are recorded where they are named, or all with `--earlier`.
"""

import argparse
import sys
from pathlib import Path

from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.earlier import EARLIER, EARLIER_SCENARIOS, EVERY_CLIENT
from tools.lab.survey.record import Choice, record
from tools.lab.survey.recording_files import RECORDINGS
from tools.lab.survey.scenarios import SCENARIOS
from tools.lab.tools import MissingToolError


def _choice(arguments: list[str]) -> Choice:
    parser = argparse.ArgumentParser(prog="survey", description="Record clients in scenarios.")
    parser.add_argument("names", nargs="*", metavar="CLIENT|SCENARIO")
    parser.add_argument("--earlier", action="store_true", help="earlier releases, as often as their page needs")
    parser.add_argument("--broker", default="", metavar="RELEASE", help="3.9.2; default: the newest")
    parser.add_argument("--folder", type=Path, default=RECORDINGS, help="where the recordings go")
    parser.add_argument("--times", type=int, default=0, help="record each so often")
    given = parser.parse_intermixed_args(arguments)
    names = set(given.names)
    clients, scenarios = {each.name for each in EVERY_CLIENT}, {each.name for each in SCENARIOS}
    if unknown := names - clients - scenarios:
        parser.error(f"no client or scenario {', '.join(sorted(unknown))}")
    every = {each.name for each in (EARLIER if given.earlier else CLIENTS)}
    times = dict.fromkeys(scenarios, given.times)
    if given.earlier:
        times = {name: given.times or count for name, count in EARLIER_SCENARIOS.items()}
    if names & scenarios:
        times = {name: times.get(name, given.times) for name in names & scenarios}
    return Choice(names & clients or every, times, given.broker, given.folder)


def main(arguments: list[str]) -> int:
    """Record; 0 if every client ran to its end."""
    failed = False
    try:
        for line in record(_choice(arguments)):
            print(line, flush=True)
            failed |= "FAILED" in line or "LARGE" in line
    except MissingToolError as error:
        print(f"survey: {error}", file=sys.stderr)
        return 2
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
