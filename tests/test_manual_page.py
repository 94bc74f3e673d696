"""The manual page in a wheel is made where only the build finds typer, as in pip's isolated builds."""

import importlib.util
import sys
import venv
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_documents import ROOT


@pytest.mark.slow
def test_it_is_made_by_a_python_without_libraries_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, interface in (
        ("hatchling.builders.hooks.plugin.interface", "BuildHookInterface"),
        ("hatchling.metadata.plugin.interface", "MetadataHookInterface"),
    ):  # which installers fetch, and no test has
        module = ModuleType(name)
        setattr(module, interface, object)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    assert b"kdissect 1.2.3" in hatch_build.manual_page("1.2.3")
