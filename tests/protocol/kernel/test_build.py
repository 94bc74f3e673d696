"""The C files are compiled, or one line says why not."""

import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dissector.protocol.kernel import build


def compiler(folder: Path, words: str) -> list[str]:
    """A compiler that does this."""
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o700)
    return [str(path)]


@pytest.mark.long
def test_a_compiler_that_never_ends_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "LONGEST", 0.5)
    child = tmp_path / "child"
    slow = compiler(tmp_path, f"sleep 600 &\necho $! >{child}.new && mv {child}.new {child}\nwait")
    with pytest.raises(SystemExit, match=r"^compiling was ended after 0\.5 seconds: .*compiler") as raised:
        build.compile_library(slow, tmp_path / "out.so")
    assert "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["child", "compiler"], "nothing half made is left"
    while _runs(int(child.read_text())):
        time.sleep(0.01)


def _runs(process: int) -> bool:
    """Whether it has not ended; an ended one may still wait for its parent."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    return False


def test_zig_has_caches_of_its_own_but_where_the_user_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", "/named")
    told = tmp_path / "told"
    words = f'env >{told}\nuntil [ "$1" = -o ]; do shift; done\n: >"$2"'
    build.compile_library(compiler(tmp_path, words), tmp_path / "out.so")
    lines = told.read_text().splitlines()
    assert f"ZIG_GLOBAL_CACHE_DIR={build.HERE.parents[2]}/build/zig/global" in lines
    assert "ZIG_LOCAL_CACHE_DIR=/named" in lines
