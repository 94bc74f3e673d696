"""`stats --connections`, and the same in Python: a line for each connection."""

import json

import dissector
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS

JAVA = str(PCAPS / "java.pcapng")


def test_connections_have_round_trips_bytes_and_ends() -> None:
    done = kdissect("stats", JAVA, "--connections", "-f", "json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    with dissector.open(JAVA) as capture:
        connections = capture.connections()
        rows = [each.connection for each in capture]
    assert [each["connection"] for each in found] == [each.number for each in connections]
    for each, known in zip(found, connections, strict=True):
        assert (each["client"], each["server"]) == (known.client, known.server)
        assert each["rows"] == rows.count(known.number)
        assert known.tcp is not None
        assert each["handshake_ns"] == known.tcp.handshake_ns
        assert (each["out"]["bytes"], each["in"]["bytes"]) == (known.tcp.sides[0].bytes, known.tcp.sides[1].bytes)
    assert found[0]["handshake_ns"] == 31117


def test_a_filter_leaves_the_connections_of_its_rows() -> None:
    done = kdissect("stats", JAVA, "--connections", "-Y", "api == Produce")
    head, *lines = done.stdout.decode().splitlines()
    assert head.split()[:5] == ["conn", "count", "out", "in", "rtt"]
    with dissector.open(JAVA) as capture:
        expected = {each.connection for each in capture.exchanges("api == Produce")}
    assert {int(line.split()[0][1:]) for line in lines} == expected


def test_bad_use_is_one_plain_line() -> None:
    done = kdissect("stats", JAVA, "--connections", "--by", "api")
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1].endswith("--connections can't be used with --by or --plot")
