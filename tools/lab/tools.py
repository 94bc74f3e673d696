"""What the lab runs with: Java, Maven and a sniffer from the system; jars and clients fetched by their own tools."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build" / "lab"
KEYSTORE = BUILD / "keystore.p12"
KEYSTORE_PASSWORD = "lab-secret"
BROKER_PEM = BUILD / "broker.pem"
"""The broker's certificate, for clients that trust it."""
CLIENT_KEYSTORE = BUILD / "client.p12"
TRUSTSTORE = BUILD / "truststore.p12"
"""With the client's certificate, which the broker trusts."""
BROKER_TRUSTSTORE = BUILD / "broker-trust.p12"
"""The same, for old clients of Java."""
KEY_LOG = BUILD / "keys.log"
"""Of all TLS connections of a broker."""
CLIENT_KEY_LOG = BUILD / "client-keys.log"
"""Of a client that logs its own."""
KEY_LIMITS = BUILD / "key-limits.properties"
"""Security properties of Java: after how many bytes it changes its keys."""
KEY_LOGGER = "extract-tls-secrets-4.0.0.jar"
KEY_BYTES = 2_000
"""So few that everyday connections exceed them."""
CODEC_PACKAGES = ("cramjam", "python-snappy", "lz4", "zstandard")
PYTHON_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "fastavro", "protobuf", *CODEC_PACKAGES)
GO_CLIENTS = {
    "sarama": "github.com/IBM/sarama",
    "franz-go": "github.com/twmb/franz-go",
    "kafka-go": "github.com/segmentio/kafka-go",
}
GO_EARLIER = {"sarama": ("github.com/Shopify/sarama", "1.40")}
"""The path of a module before it moved, and the first release after that."""
NODE_CLIENTS = ("kafkajs", "@platformatic/kafka")


class MissingToolError(Exception):
    """A program that the system lacks, or a fetch that failed: one plain line."""


def require(*programs: str) -> str:
    """The first of these programs that is there."""
    for program in programs:
        if found := shutil.which(program):
            return found
    raise MissingToolError(f"the lab needs {' or '.join(programs)}, which this system does not have")


def run(*command: str | Path, folder: Path | None = None) -> str:
    """Run to the end; return what it prints."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise MissingToolError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def fetched(pom: Path, folder: str, *settings: str) -> Path:
    """A folder with the jars of a pom; fetched again if the pom has changed since."""
    jars, stamp = BUILD / folder, BUILD / f"{folder}.pom.xml"
    if not stamp.exists() or stamp.read_text() != pom.read_text():
        shutil.rmtree(jars, ignore_errors=True)  # of two releases the class path would have both
        run(require("mvn"), "-q", "-B", "-f", pom, *settings, "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}")  # fmt: skip
        shutil.copyfile(pom, stamp)
    return jars


def compiled(sources: Path, jars: Path, folder: str) -> str:
    """The class path with these jars and with the classes of a folder of programs."""
    classes = BUILD / folder
    run(require("javac"), "-cp", f"{jars}/*", "-d", classes, *sorted(sources.glob("*.java")))
    return f"{classes}:{jars}/*"


def classpath() -> str:
    """Kafka's newest jars and the Java clients that are compiled with them."""
    return compiled(HERE / "java", fetched(HERE / "pom.xml", "jars"), "classes")


def broker_classpath(release: str) -> str:
    """What runs a broker of this release."""
    pom = HERE / "pom.xml" if release == kafka_version() else HERE / "old" / f"broker-{release}.xml"
    return f"{fetched(pom, 'jars' if release == kafka_version() else f'jars-{release}')}/*"


def old_classpath(release: str) -> str:
    """An old release of Java's client, and the programs that are compiled with it."""
    jars = fetched(HERE / "old" / "client.xml", f"client-{release}", f"-Drelease={release}")
    return compiled(HERE / "old" / f"java-{release.rpartition('.')[0]}", jars, f"classes-{release}")


def keystore() -> None:
    """Make a broker's keystore, with a certificate that no client trusts."""
    if not KEYSTORE.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        run(require("keytool"), "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-groupname", "secp256r1",
            "-dname", "CN=broker", "-ext", "SAN=IP:127.0.0.1", "-storetype", "PKCS12", "-keystore", KEYSTORE,
            "-storepass", KEYSTORE_PASSWORD)  # fmt: skip


def tls_stores() -> None:
    """Make what a broker and its clients need to trust each other."""
    keystore()
    opened = ("-storetype", "PKCS12", "-storepass", KEYSTORE_PASSWORD)
    if not BROKER_TRUSTSTORE.exists():
        for store in (CLIENT_KEYSTORE, TRUSTSTORE):
            store.unlink(missing_ok=True)
        run(require("keytool"), "-genkeypair", "-alias", "alice", "-keyalg", "RSA", "-dname", "CN=alice,OU=lab",
            "-keystore", CLIENT_KEYSTORE, *opened)  # fmt: skip
        run("keytool", "-exportcert", "-rfc", "-alias", "broker", "-keystore", KEYSTORE, "-file", BROKER_PEM, *opened)
        exported = BUILD / "client.pem"
        run("keytool", "-exportcert", "-rfc", "-alias", "alice", "-keystore", CLIENT_KEYSTORE, "-file", exported,
            *opened)  # fmt: skip
        for alias, store, file in (("alice", TRUSTSTORE, exported), ("broker", BROKER_TRUSTSTORE, BROKER_PEM)):
            run("keytool", "-importcert", "-noprompt", "-alias", alias, "-keystore", store, "-file", file, *opened)
    KEY_LIMITS.write_text(f"jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate {KEY_BYTES}\n")
    for log in (KEY_LOG, CLIENT_KEY_LOG):
        log.unlink(missing_ok=True)


def kafka_version() -> str:
    """The newest release, as the pom has it."""
    found = re.search(r"kafka_2\.13</artifactId><version>([\d.]+)", (HERE / "pom.xml").read_text())
    assert found
    return found[1]


def schema_jars(release: str, folder: Path) -> list[Path]:
    """Of a release's jars those whose message schemas the tables have.

    Before 4.0 the keys of the coordinators' records called their type a version: there is nothing to merge them with,
    and nothing is lost, for the newer releases have every version of every key and value.
    """
    names = ("kafka-clients", "kafka-metadata") if int(release.split(".")[0]) < 4 else ("kafka*",)
    return sorted(jar for name in names for jar in folder.glob(f"{name}-{release}.jar"))


def interpreter(release: str) -> str:
    """A Python of this release, `3.10`, for clients that have no wheel for a newer one; pyenv's too."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{release}.*/bin/python"))
    for found in filter(None, (shutil.which(f"python{release}"), *map(str, installed))):
        if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found  # pyenv has a command for each release, which fails unless that release is chosen
    raise MissingToolError(f"the lab needs Python {release}, which this system does not have")


def client_python(pinned: str = "", python_release: str = "") -> Path:
    """The Python of an environment with the Python clients; or with one of them, `NAME==RELEASE`, followed by what that
    release needs besides, and with what it needs for every codec."""
    folder = BUILD / "-".join(filter(None, ("clients", *pinned.partition(" ")[0].split("=="))))
    python = folder / "bin" / "python"
    if not python.exists():
        run(interpreter(python_release) if python_release else sys.executable, "-m", "venv", folder)
        packages = (*pinned.split(), *CODEC_PACKAGES) if pinned else PYTHON_CLIENTS
        run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def node_folder() -> Path:
    """Where the clients for Node are installed, the programs beside them."""
    folder = BUILD / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for file in (HERE / "node").iterdir():
        shutil.copyfile(file, folder / file.name)
    if not all((folder / "node_modules" / client).exists() for client in NODE_CLIENTS):
        run(require("npm"), "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", folder=folder)
    return folder


def go_program(client: str, folder: str = "") -> Path:
    """The compiled program of a Go client; those in a folder have a task of their own."""
    program = BUILD / "-".join(filter(None, (client, folder, "client")))
    run(require("go"), "build", "-o", program, "./" + "/".join(filter(None, (folder, client))), folder=HERE / "go")
    return program


def earlier_go_program(client: str, release: str) -> Path:
    """The survey's program of a Go client, compiled with an earlier release; a module with that client alone, as others
    would ask for a newer one. The tag `earlier` stands for what the release lacks."""
    folder, path = BUILD / f"go-{client}-{release}", GO_CLIENTS[client]
    for name in ("task", client):
        shutil.copytree(HERE / "go" / "survey" / name, folder / "survey" / name, dirs_exist_ok=True)
    module = (HERE / "go" / "go.mod").read_text().split("require", 1)[0] + f"require {path} v{release}\n"
    was, moved = GO_EARLIER.get(client, ("", "0"))
    if was and _numbers(release) < _numbers(moved):
        module += f"replace {path} => {was} v{release}\n"
    (folder / "go.mod").write_text(module)
    program = folder / client
    run(require("go"), "build", "-mod=mod", "-tags", "earlier", "-o", program, f"./survey/{client}", folder=folder)
    return program


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def rust_program(name: str = "lab-rskafka") -> Path:
    """A compiled program of the Rust client. A source that has changed gets the time of now: cargo compiles what is
    newer than its program, and a source may have been written while that was compiled."""
    folder = BUILD / "rust"
    shutil.copytree(HERE / "rust", folder, dirs_exist_ok=True, copy_function=_copy_changed)
    run(require("cargo"), "build", "--quiet", folder=folder)
    return folder / "target" / "debug" / name


def _copy_changed(source: str, target: str) -> None:
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copyfile(source, target)


def client_version(client: str) -> str:
    """The release of a client that is fetched."""
    if client == "java":
        return kafka_version()
    if " " in client and client.partition(" ")[0] in ("java", *GO_CLIENTS):
        return client.partition(" ")[2]
    if "==" in client:
        return client.partition("==")[2]
    if client in NODE_CLIENTS:
        pinned: str = json.loads((HERE / "node" / "package.json").read_text())["dependencies"][client]
        return pinned
    if client in GO_CLIENTS:
        found = re.search(rf"{GO_CLIENTS[client]} v([\d.]+)", (HERE / "go" / "go.mod").read_text())
        assert found
        return found[1]
    if client == "rskafka":
        needed = tomllib.loads((HERE / "rust" / "Cargo.toml").read_text())["dependencies"]
        return str(needed[client]["version"]).removeprefix("=")
    if client == "kdissect":
        return version("kafka-dissector")
    if client == "curl":
        done = subprocess.run([require("curl"), "--version"], capture_output=True, text=True, check=True)
        return done.stdout.split()[1]
    if client == "plain socket":
        return "none"
    code = f"from importlib.metadata import version; print(version({client!r}))"
    return subprocess.run([client_python(), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
