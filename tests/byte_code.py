"""The byte code of all modules, written before workers start.

They start together: in a fresh clone each of them would compile all modules, which is half of what starting takes.
"""

from concurrent.futures import ProcessPoolExecutor
from importlib.util import cache_from_source
from multiprocessing import get_context
from pathlib import Path
from py_compile import compile as compile_module

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, assertstate_key

ROOT = Path(__file__).parents[1]


def write_byte_code(config: pytest.Config) -> None:
    """Compile what was never compiled, on all cores; what is out of date is left to who imports it."""
    sources = [path for folder in ("dissector", "tui", "tools", "tests") for path in (ROOT / folder).rglob("*.py")]
    missing = [path for path in sources if not _compiled(path).exists()]
    if len(missing) < len(sources) / 10:
        return
    for folder in {path.parent for path in missing}:
        (folder / "__pycache__").mkdir(exist_ok=True)
    with ProcessPoolExecutor(mp_context=get_context("fork"), initializer=_keep, initargs=(config,)) as pool:
        for _ in pool.map(_compile, missing, chunksize=20):
            pass


def _is_of_tests(path: Path) -> bool:
    """Whether pytest rewrites its assertions."""
    return path.name.startswith("test_") or path.name == "conftest.py"


def _compiled(path: Path) -> Path:
    return (
        path.parent / "__pycache__" / f"{path.stem}{PYC_TAIL}" if _is_of_tests(path) else Path(cache_from_source(path))
    )


_configs: list[pytest.Config] = []


def _keep(config: pytest.Config) -> None:
    _configs.append(config)


def _compile(path: Path) -> None:
    if _is_of_tests(path):
        source_hash, code = _rewrite_test(path, _configs[0])
        _write_pyc(_configs[0].stash[assertstate_key], code, source_hash, _compiled(path))
    else:
        compile_module(str(path), doraise=True)
