"""The files for clusters say what the program, Spark and Kubernetes know. None of them is started here."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import kdissect

yaml: Any = pytest.importorskip("yaml", reason="NOT TESTED with PyYAML: it is not installed")
FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
MANIFEST = [each for each in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()) if each]
BY_KIND = {each["kind"]: each for each in MANIFEST}
SPARK_PREFIXES = tuple(
    f"spark.{each}." for each in ("executor", "executorEnv", "driver", "kubernetes", "yarn", "pyspark")
)


def _conf(words: list[str]) -> dict[str, str]:
    found = [re.fullmatch(r"--conf=(\S+?)=(.*)", word) for word in words]
    return {each[1]: each[2] for each in found if each}


def test_the_pieces_of_the_manifest_fit_together() -> None:
    pod = BY_KIND["Job"]["spec"]["template"]
    [driver] = pod["spec"]["containers"]
    conf = _conf(driver["args"])
    service = BY_KIND["Service"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert conf["spark.driver.host"] == service["metadata"]["name"]
    assert {int(conf["spark.driver.port"]), int(conf["spark.driver.blockManager.port"])} == {
        port["port"] for port in service["spec"]["ports"]
    }
    assert conf["spark.kubernetes.container.image"] == driver["image"]
    account = BY_KIND["ServiceAccount"]["metadata"]["name"]
    assert account == pod["spec"]["serviceAccountName"] == BY_KIND["RoleBinding"]["subjects"][0]["name"]
    assert account == conf["spark.kubernetes.authenticate.driver.serviceAccountName"]
    assert BY_KIND["RoleBinding"]["roleRef"]["name"] == BY_KIND["Role"]["metadata"]["name"]
    assert {f"$({name['name']})" for name in driver["env"]} >= set(re.findall(r"\$\(\w+\)", " ".join(driver["args"])))
    secrets = {each["valueFrom"]["secretKeyRef"]["key"] for each in driver["env"] if "secretKeyRef" in str(each)}
    assert {conf[name].partition(":")[2] for name in conf if ".secretKeyRef." in name} == secrets


@pytest.mark.long
def test_the_command_of_the_manifest_is_one_that_the_program_has(tmp_path: Path) -> None:
    """It fails for what is not there, the captures, and not for how it is written."""
    [driver] = BY_KIND["Job"]["spec"]["template"]["spec"]["containers"]
    assert all(name.startswith(SPARK_PREFIXES) for name in _conf(driver["args"]))
    _, *words = driver["command"]
    args = [word for word in driver["args"] if not word.startswith("--master")]
    done = kdissect(*[word.replace("s3://", f"{tmp_path}/") for word in [*words, *args]], "--master=nowhere")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"nowhere: not a master" in done.stderr or b"no such file" in done.stderr, done.stderr


def test_the_script_for_yarn_is_a_shell_script(tmp_path: Path) -> None:
    """With programs that print what they are given: the words reach kdissect as they were given."""
    (tmp_path / "venv/bin").mkdir(parents=True)
    for name in ("venv-pack", "kdissect"):
        program = tmp_path / "venv/bin" / name
        program.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        program.chmod(0o700)
    words = [
        str(FOLDER / "yarn.sh"),
        str(tmp_path / "venv"),
        "s3://a b/c",
        "s3://t",
        "--conf",
        "spark.executor.instances=1",
    ]
    done = subprocess.run(
        words, env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[lines.index("kdissect") :][:5] == ["kdissect", "ingest", "s3://a b/c", "--out", "s3://t"]
    assert lines[-2:] == ["--conf", "spark.executor.instances=1"]
    names = [line.partition("=")[0] for line, before in zip(lines[1:], lines, strict=False) if before == "--conf"]
    assert all(name.startswith(SPARK_PREFIXES) for name in names)
