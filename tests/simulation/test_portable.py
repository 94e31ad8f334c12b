"""The C++ sums as compiled for processors without AVX-512, whose lanes are kept in plain loops."""

import ctypes
import platform

import jax
import numpy as np
import pytest

from sims.simulation import native
from sims.weights import FACTORIES
from tests.simulation.test_native_rules import RULES, compared
from tests.simulation.test_native_rules import TOLERANCE as OF_RULES
from tests.simulation.test_sums import TOLERANCE, check

PLAIN = ("-march=x86-64", "-O0")
"""The last such flags count: vectors of 16 bytes, and a third of the time to compile."""

pytestmark = [
    pytest.mark.skipif(
        not native.usable(FACTORIES["sparsemax"](), "cpu", np.inf), reason="no C++ compiler"
    ),
    pytest.mark.skipif(
        platform.machine() not in ("x86_64", "AMD64"), reason="no AVX-512 in the usual library"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Build it; its functions get names of their own beside those in use."""
    path = tmp_path_factory.mktemp("portable") / "sums.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "FLAGS", (*native.FLAGS, *PLAIN))
        patch.setattr(native, "SOURCES", [s for s in native.SOURCES if s.stem in ("sums", "rules")])
        native.build(path)
    handlers = ctypes.cdll.LoadLibrary(str(path))
    for name in native.HANDLERS:
        handler = jax.ffi.pycapsule(getattr(handlers, name))
        jax.ffi.register_ffi_target(f"portable_{name}", handler, platform="cpu")
    return path


@pytest.fixture
def portable(library, monkeypatch):
    """Within a test, every call goes to that library; returns the names called."""
    called, call = [], jax.ffi.ffi_call

    def renamed(name, *arguments, **options):
        called.append(name)
        return call(f"portable_{name}", *arguments, **options)

    monkeypatch.setattr(jax.ffi, "ffi_call", renamed)
    return called


@pytest.mark.parametrize("precision", OF_RULES)
@pytest.mark.parametrize("name", ["entmax 1.7", "entmax 2", "relu, uniform"])
def test_rules(portable, name, precision):
    """With few keys attended to and many, in broken blocks."""
    for bandwidth in (0.25, 20.0):
        error = compared(*RULES[name], "distance", [(5, 4, 3, 333)], bandwidth, precision)
        assert error <= OF_RULES[precision], bandwidth
    assert set(portable) == {f"sims_rules_{precision}"}


@pytest.mark.parametrize("precision", TOLERANCE)
def test_kernels(portable, precision):
    for kernel in ("gaussian", "softmax"):
        check(native.native_sums, kernel, precision, (5, 4, 3, 333), 1.0)
    assert set(portable) == {f"sims_sums_{precision}"}
