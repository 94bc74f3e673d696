"""The command that adds an extra, for each way to install the program, told by the files that each leaves."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dissector.core.extras import Installation, MissingExtraError, install_command, missing, require
from tests.conftest import PCAPS

ROOT = PCAPS.parent

REQUIREMENTS = (
    "numpy>=2.0", "backports-zstd>=1.0; python_version < '3.14'", "dpkt>=1.9.8; extra == 'dpkt'",
    "fastavro>=1.9; extra == 'schemas'", 'protobuf>=5.29 ; extra == "schemas"',
    "pyarrow>=18; extra == 'tables'", "kafka-dissector[tables,dpkt]; extra == 'spark'",
    "pyspark>=4.1; python_version >= '3.11' and extra == 'spark'", "kafka-dissector[spark]; extra == 'spark'",
)  # fmt: skip
RECEIPT = """
[tool]
requirements = [
    { name = "kafka-dissector", extras = ["scapy"] }, { name = "dpkt" }, { name = "rich", specifier = ">=13" },
]
entrypoints = [{ name = "kdissect", install-path = "/opt/me/.local/bin/kdissect" }]
"""


def installed(folder: Path, **changes: object) -> Installation:
    """An environment with pip, in which only the Python of the system is beside it."""
    (folder / "system").mkdir(exist_ok=True)
    python = str(folder / "bin" / "python")
    made = Installation(folder, folder / "system", python, folder / "system", True, "", REQUIREMENTS)
    return made._replace(**changes)


def test_pipx_injects_the_libraries(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    at = installed(tmp_path, has_pip=False)
    assert install_command("schemas", at) == "pipx inject kafka-dissector 'fastavro>=1.9' 'protobuf>=5.29'"
    assert install_command("spark", at) == (
        "pipx inject kafka-dissector 'pyarrow>=18' 'dpkt>=1.9.8' 'pyspark>=4.1; python_version >= '\"'\"'3.11'\"'\"''"
    )
    unknown = at._replace(requirements=())
    assert install_command("schemas", unknown) == "pipx install --force 'kafka-dissector[schemas]'"


def test_a_tool_of_uv_keeps_what_it_has(tmp_path: Path) -> None:
    receipt = tmp_path / "uv-receipt.toml"
    receipt.write_text(RECEIPT)
    at = installed(tmp_path, has_pip=False)
    wanted = "uv tool install --with dpkt --with 'rich>=13' 'kafka-dissector[scapy,schemas]'"
    assert install_command("schemas", at) == wanted


@pytest.mark.parametrize("text", ["", "[tool", "[tool]\nrequirements = 7", "[tool]\nrequirements = [7]", "\xff"])
def test_a_receipt_that_is_none_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "uv-receipt.toml").write_bytes(text.encode("latin-1"))
    assert install_command("schemas", installed(tmp_path)) == "uv tool install 'kafka-dissector[schemas]'"


def test_an_environment_has_pip_of_its_own(tmp_path: Path) -> None:
    at = installed(tmp_path)
    assert install_command("dpkt", at) == f"{tmp_path}/bin/python -m pip install 'kafka-dissector[dpkt]'"
    assert install_command("dpkt", at._replace(active=str(tmp_path))) == "pip install 'kafka-dissector[dpkt]'"
    other = at._replace(active=str(tmp_path / "other"))
    assert install_command("dpkt", other) == f"{tmp_path}/bin/python -m pip install 'kafka-dissector[dpkt]'"
    spaced = at._replace(executable="/home/my self/bin/python")
    assert install_command("dpkt", spaced).startswith("'/home/my self/bin/python' -m pip install ")


def test_an_environment_of_uv_may_have_no_pip(tmp_path: Path) -> None:
    configuration = tmp_path / "pyvenv.cfg"
    configuration.write_text("home = /usr/bin\nuv = 0.9.1\n")
    at = installed(tmp_path, has_pip=False, active=str(tmp_path))
    assert install_command("dpkt", at) == f"uv pip install --python {tmp_path}/bin/python 'kafka-dissector[dpkt]'"
    assert install_command("dpkt", at._replace(has_pip=True)) == "pip install 'kafka-dissector[dpkt]'"
    configuration.write_text("home = /opt/uv = /bin\n")
    assert install_command("dpkt", at) == f"{tmp_path}/bin/python -m pip install 'kafka-dissector[dpkt]'"


def test_a_python_that_its_system_manages_takes_nothing(tmp_path: Path) -> None:
    at = installed(tmp_path)
    system = at._replace(base_prefix=tmp_path)
    assert install_command("dpkt", system) == f"{tmp_path}/bin/python -m pip install 'kafka-dissector[dpkt]'"
    (at.stdlib / "EXTERNALLY-MANAGED").touch()
    assert install_command("dpkt", system) == "pipx install 'kafka-dissector[dpkt]'"
    assert install_command("dpkt", at) == f"{tmp_path}/bin/python -m pip install 'kafka-dissector[dpkt]'"


def test_this_installation_has_a_command() -> None:
    assert "kafka-dissector[tables]" in missing("tables need more libraries", "tables")
    with pytest.raises(MissingExtraError, match=r"x\(\) needs no_such_module: .*kafka-dissector\[dpkt\]") as raised:
        require("x()", "dpkt", "sys", "no_such_module")
    assert raised.value.name == "no_such_module"


WITHOUT = {
    "dissector.open({path!r}).to_pandas()": ("to_pandas() needs pandas", "notebook"),
    "dissector.open({path!r}).to_polars('records')": ("to_polars() needs polars", "notebook"),
    "dissector.open({path!r}).to_arrow()": ("to_arrow() needs pyarrow", "tables"),
    "dissector.table_views('tables')": ("table_views() needs pyarrow", "tables"),
    "import dissector.scapy": ("dissector.scapy needs scapy", "scapy"),
    "dissector.open({path!r}, schemas='.')": ("schemas need fastavro and protobuf", "schemas"),
}
SCRIPT = """
import sys
import tomllib
import dissector
for name in ("pandas", "polars", "pyarrow", "deltalake", "scapy", "fastavro"):
    sys.modules[name] = None
for line in sys.argv[1:]:
    try:
        exec(line)
    except (ImportError, dissector.CaptureError) as error:
        print(error)
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_api_says_which_extra_it_needs() -> None:
    lines = [line.format(path=str(PCAPS / "java.pcapng")) for line in WITHOUT]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *lines], capture_output=True, text=True, check=True)
    for said, (words, extra) in zip(done.stdout.splitlines(), WITHOUT.values(), strict=True):
        assert said == missing(words, extra)


def test_the_document_lists_the_extras_that_there_are() -> None:
    """All that users install; `all` has the others but `connect`, which pins Spark's own choices."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    of_users = {*extras} - {"check", "test", "docs", "dev"}
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/python.md").read_text().partition("## Extras")[2], re.MULTILINE)
    assert sorted(rows) == sorted(of_users)
    (everything,) = extras["all"]
    assert {*everything.removesuffix("]").partition("[")[2].split(",")} == of_users - {"all", "connect"}
