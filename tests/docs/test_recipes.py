"""The recipes of `docs/serve-replay.md`: what their YAML says fits together, and their commands proxy a client."""

import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import dissector
from dissector.proxy_server.faults import read_rule
from tests.cli.test_commands import KDISSECT
from tests.conftest import PCAPS
from tests.docs.test_outputs import calls, parsed
from tests.probe.servers import frame
from tests.test_documents import ROOT
from tests.traffic import request

yaml = pytest.importorskip("yaml", reason="NOT TESTED without PyYAML")
PAGE: Final = (ROOT / "docs" / "serve-replay.md").read_text()
COMPOSE, POD = (yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
CONTAINERS: Final = {each["name"]: each for each in POD["spec"]["containers"]}
SERVICES: Final = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
METADATA_V1_OF_NOTHING: Final = request(7, api_key=3, version=1, body=bytes(4))


def shell(container: dict[str, Any]) -> str:
    """The line that a container's shell runs."""
    words = container["command"]
    words = shlex.split(words) if isinstance(words, str) else words
    assert words[:2] == ["sh", "-c"]
    line: str = words[2]
    return line


def own_words(container: dict[str, Any]) -> list[str]:
    """The words of kdissect in it."""
    [words] = calls(shell(container))
    return words


@contextmanager
def running(words: list[str]) -> Iterator[str]:
    """kdissect with these words; where it listens."""
    with subprocess.Popen([*KDISSECT, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(line for line in process.stderr if "listening on" in line).split("listening on ")[1].split()[0]
        finally:
            process.terminate()
            process.stderr.read()
    assert process.returncode == 0


def ask(port: int) -> bytes:
    """What a client gets that asks for brokers alone."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(METADATA_V1_OF_NOTHING)
        return frame(connection)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_the_services_of_compose_find_each_other() -> None:
    services = COMPOSE["services"]
    assert all("image" in each for each in services.values())
    words = own_words(services["watch"])
    assert words[:2] == ["proxy", "broker:9092"]
    settings = services["broker"]["environment"]
    assert settings["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{words[1]}"  # the image's own is localhost
    assert services["broker"].items() <= SERVICES["broker"].items()
    name, _, port = services["app"]["environment"]["BOOTSTRAP_SERVERS"].rpartition(":")
    assert (name, port) == (option(words, "--advertise"), option(words, "--listen").rpartition(":")[2])
    assert name in services
    [mounted] = services["watch"]["volumes"]
    assert option(words, "-w").startswith(mounted.partition(":")[2] + "/")
    parsed(words)


def test_the_containers_of_the_pod_share_what_they_name() -> None:
    words = own_words(CONTAINERS["watch"])
    [variable] = CONTAINERS["app"]["env"]
    assert variable["value"] == "127.0.0.1:19092"
    assert "--listen" not in words  # 19092 is where a proxy listens by itself
    [mount] = CONTAINERS["watch"]["volumeMounts"]
    assert mount["name"] in {each["name"] for each in POD["spec"]["volumes"]}
    assert option(words, "-w").startswith(mount["mountPath"] + "/")
    parsed(words)


def test_what_is_installed_has_the_command() -> None:
    project = re.search(r'^name = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None
    for container in (COMPOSE["services"]["watch"], CONTAINERS["watch"]):
        assert shell(container).startswith(f"pip install -q {project[1]} && ")


def test_what_stops_a_container_reaches_the_program() -> None:
    """A shell that is process 1 ignores SIGTERM: so the container would be killed ten seconds later."""
    for container in (COMPOSE["services"]["watch"], CONTAINERS["watch"]):
        assert re.fullmatch(r"pip install [^&;|]+ && exec kdissect proxy [^&;|]+", shell(container))


def test_the_image_starts_without_capabilities() -> None:
    """With the effective bit, the kernel refuses to start the program where the container lacks the capability."""
    assert re.findall(r"setcap (\S+)", (ROOT / "Dockerfile").read_text()) == ["cap_net_raw+p"]


def test_beside_the_broker_of_the_repository_the_image_may_capture() -> None:
    own = SERVICES["kdissect"]
    assert own["network_mode"] == "service:broker"
    assert (own["cap_drop"], own["cap_add"]) == (["ALL"], ["NET_RAW"])
    parsed(shlex.split(own["command"]))


@pytest.mark.slow
@pytest.mark.parametrize("container", [COMPOSE["services"]["watch"], CONTAINERS["watch"]], ids=["compose", "pod"])
def test_their_commands_proxy_a_client(container: dict[str, Any], tmp_path: Path) -> None:
    """With the recording of a broker in place of one, at free ports, in another folder."""
    words = own_words(container)
    with dissector.serve(PCAPS / "java.pcapng") as broker:
        words[1] = broker.bootstrap
        words[words.index("-w") + 1] = str(tmp_path / "kept.pcapng")
        if "--listen" in words:
            words[words.index("--listen") + 1] = "0.0.0.0:0"
        else:
            words += ["--listen", "127.0.0.1:0"]
        with running(words) as address:
            host = address.rpartition(":")[0]
            answer = ask(int(address.rpartition(":")[2]))
    assert host == ("watch" if "--advertise" in words else "127.0.0.1")
    assert len(host).to_bytes(2, "big") + host.encode() in answer
    [kept] = tmp_path.iterdir()
    with dissector.open(kept) as capture:
        assert [exchange.api for exchange in capture.exchanges()] == ["Metadata"]


@pytest.mark.slow
def test_a_client_meets_the_errors_of_the_retry_recipe() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    [fault] = [words for line in lines for words in calls(line) if "--strict" in words]
    rule = option(fault, "--fault")
    assert rule == "api == Produce: error NOT_LEADER_OR_FOLLOWER, first 3"
    with dissector.serve(PCAPS / "java.pcapng") as broker, dissector.proxy(broker.bootstrap) as traffic:
        kafka = pytest.importorskip("kafka", reason="NOT TESTED: kafka-python can't be imported")
        with traffic.fault(rule) as errors:
            producer = kafka.KafkaProducer(bootstrap_servers=traffic.bootstrap)
            assert producer.send("java-orders", b"x", partition=1).get(30).partition == 1
            producer.close()
        assert errors.fired == 3


def test_the_old_broker_of_the_page_is_a_rule() -> None:
    [offer] = re.findall("`kdissect proxy broker:9092 --fault '(.+)'`", PAGE)
    assert read_rule(offer).action
