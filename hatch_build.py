"""What hatchling runs when the program is installed or a wheel is made: the C files are compiled.

An editable install gets the shared object into the source tree. A wheel has it in its package and is tagged for
its platform and any Python 3: for this machine, unless $CC is a cross compiler and $_PYTHON_HOST_PLATFORM names what it
compiles for, as `tools/wheels.py` sets them.

A wheel has the manual page, which the program makes of its own options: to import those, it needs typer, as
`pyproject.toml` requires it, and nothing else.

The README in the metadata has absolute links: to the repository that `pyproject.toml` names, or none.
"""

import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent
KERNEL = "dissector/protocol/kernel"
ZIGLANG = "ziglang>=0.13"
MANUAL_PAGE = "share/man/man1/kdissect.1"
PRINT_MANUAL = """
import sys
from typer.main import get_command
from dissector.cli.every_command import app
from dissector.cli.reference import manual
sys.stdout.buffer.write(manual(get_command(app), sys.argv[1]).encode())
"""

_spec = importlib.util.spec_from_file_location("kernel_build", ROOT / KERNEL / "build.py")
assert _spec
assert _spec.loader
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)


class CustomBuildHook(BuildHookInterface):
    """Compiles the kernel. hatchling finds the class by its base."""

    def dependencies(self) -> list[str]:
        """Return what to install for the build: typer, and a compiler, where this machine has none."""
        if self.target_name != "wheel":
            return []
        typer = next(each for each in self.metadata.core.dependencies if each.startswith("typer"))
        return [typer] if build.own_compiler() is not None else [typer, ZIGLANG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. `version` is ``editable`` or ``standard``."""
        if self.target_name != "wheel":
            return
        compiler = build.own_compiler() or build.ZIG
        if version == "editable":
            build.compile_library(compiler, build.LIBRARY)
            return
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if sys.platform == "darwin" and "_PYTHON_HOST_PLATFORM" not in os.environ:
            tag = f"macosx_11_0_{platform.machine()}"  # Python's may be older and name both processors
            compiler = [*compiler, "-mmacosx-version-min=11.0"]
        out = ROOT / "build" / "kernel" / tag / build.LIBRARY.name
        build.compile_library(compiler, out)
        build_data["tag"] = f"py3-none-{tag}"
        build_data["pure_python"] = False
        build_data["force_include"][str(out)] = f"{KERNEL}/{out.name}"
        page = ROOT / "build" / "kdissect.1"
        page.write_bytes(manual_page(self.metadata.version))
        build_data["shared_data"][str(page)] = MANUAL_PAGE


def manual_page(version: str) -> bytes:
    """Return the manual page of the program in this tree."""
    command = [sys.executable, "-c", PRINT_MANUAL, version]
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])  # an isolated build has typer only where we find it
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, cwd=ROOT).stdout


class CustomMetadataHook(MetadataHookInterface):
    """Sets what depends on where the repository is: links of the README, and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata of the project."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, repository)}
        metadata["urls"] = _urls(repository)


def absolute_links(text: str, repository: str) -> str:
    """Return a README whose links lead to the repository, from wherever it is read; words alone if there is none."""

    def link(found: re.Match[str]) -> str:
        image, words, path = found.groups()
        if not repository:
            return "" if image else words
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/main/{path})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)", link, text)


def _urls(repository: str) -> dict[str, str]:
    if not repository:
        return {}
    pages = {"Changelog": "blob/main/CHANGELOG.md", "Documentation": "blob/main/docs/index.md", "Issues": "issues"}
    return {"Source": repository, **{name: f"{repository}/{page}" for name, page in pages.items()}}
