"""`python -m tools.lab.survey [CLIENT|SCENARIO…]`: record all, or the named clients in the named scenarios."""

import sys

from tools.lab.survey.clients import CLIENTS
from tools.lab.survey.record import record
from tools.lab.survey.scenarios import SCENARIOS
from tools.lab.tools import MissingToolError


def main(names: list[str]) -> int:
    """Record; 0 if every client ran to its end."""
    clients = {client.name for client in CLIENTS}.intersection(names)
    scenarios = {scenario.name for scenario in SCENARIOS}.intersection(names)
    if unknown := set(names) - clients - scenarios:
        print(f"survey: no client or scenario {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    failed = False
    try:
        for line in record(clients, scenarios):
            print(line, flush=True)
            failed |= "FAILED" in line or "LARGE" in line
    except MissingToolError as error:
        print(f"survey: {error}", file=sys.stderr)
        return 2
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
