"""CRC-32C in C, against another implementation of it, by the processor's instruction and by tables."""

import ctypes

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.kernel import library
from dissector.protocol.kernel import build


@pytest.fixture(scope="module", params=["instruction", "tables"])
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if request.param == "instruction":
        return library()
    compiler = build.own_compiler()
    if compiler is None:
        pytest.skip("NOT TESTED with cc: it is not installed")
    out = tmp_path_factory.mktemp("kernel") / "tables.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFLAGS", "-O0 -DTABLES_ALONE")  # to optimize takes longer than all tests here
        build.compile_library(compiler, out)
    return ctypes.CDLL(str(out))


def crc32c(kernel: ctypes.CDLL, data: np.ndarray) -> int:
    kernel.kernel_crc32c.argtypes, kernel.kernel_crc32c.restype = (ctypes.c_void_p, ctypes.c_int64), ctypes.c_uint32
    return kernel.kernel_crc32c(data.ctypes.data, len(data))


@pytest.mark.long
@pytest.mark.slow
@given(st.binary(max_size=200), st.integers(0, 8))
def test_the_checksum_of_any_bytes_is_googles(kernel: ctypes.CDLL, data: bytes, start: int) -> None:
    assert crc32c(kernel, np.frombuffer(data, np.uint8)[start:]) == google_crc32c.value(data[start:])


def test_the_checksum_of_many_bytes_is_googles(kernel: ctypes.CDLL) -> None:
    data = np.random.default_rng(20).integers(0, 256, 100_003, np.uint8)
    assert crc32c(kernel, data) == google_crc32c.value(data.tobytes())


@pytest.mark.long
def test_a_size_below_zero_is_that_of_no_bytes(kernel: ctypes.CDLL) -> None:
    kernel.kernel_crc32c.argtypes, kernel.kernel_crc32c.restype = (ctypes.c_void_p, ctypes.c_int64), ctypes.c_uint32
    assert kernel.kernel_crc32c(None, -1) == 0
