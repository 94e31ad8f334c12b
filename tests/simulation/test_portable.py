"""The C++ sums as compiled for processors without AVX-512, whose lanes are kept in plain loops."""

import ctypes
import platform

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import KERNELS
from sims.simulation import native
from sims.weights import FACTORIES
from tests.simulation.test_native_rules import RULES, both
from tests.simulation.test_native_rules import TOLERANCE as OF_RULES
from tests.simulation.test_sums import TOLERANCE, exact

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
@pytest.mark.parametrize("name", ["sparsemax", "entmax 1.7", "entmax 2", "relu, uniform"])
def test_rules(portable, name, precision):
    """Every sum is that of plain JAX, with few keys attended to and many, in broken blocks."""
    kind, options = RULES[name]
    rule = FACTORIES[kind](**options, scores="distance")
    for bandwidth in (0.25, 1.0, 20.0):
        found, expected = both(rule, (5, 4, 3, 333), bandwidth, precision)
        for value, wanted in zip(found, expected, strict=True):
            error = np.abs(value - wanted).max() / np.abs(wanted).max()
            assert error <= OF_RULES[precision], bandwidth
    assert set(portable) == {f"sims_rules_{precision}"}


@pytest.mark.parametrize("precision", TOLERANCE)
def test_kernels(portable, precision):
    """Gaussian and softmax sums are those of float64 NumPy."""
    rng = np.random.default_rng(2)
    keys = rng.normal(size=(3, 4, 333)).astype(precision)
    columns = np.stack([rng.normal(size=333), np.ones(333)]).astype(precision)
    queries = rng.normal(size=(5, 3, 4)).astype(precision)
    for kernel in ("gaussian", "softmax"):
        arrays = [x.astype(float) for x in (queries, keys, columns)]
        linear, gram, _, _ = exact(kernel, *arrays)
        found = native.native_sums(
            KERNELS[kernel], *map(jnp.asarray, (queries, keys, columns)), 1.0, 5
        )
        total = found.linear[..., -1]
        for value, wanted in (
            (found.linear / total[..., None], linear),
            (found.gram / (total[:, :, None] * total[:, None]), gram),
        ):
            assert np.abs(value - wanted).max() <= TOLERANCE[precision] * np.abs(wanted).max()
    assert set(portable) == {f"sims_sums_{precision}"}


@pytest.mark.parametrize(("processor", "expected"), [("arm", "arm"), ("", "arm64")])
def test_where_nothing_lists_processors_libraries_are_told_apart_by_name(
    monkeypatch, processor, expected
):
    """By that of the processor, or of the machine where the processor's is not known."""

    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(native, "Path", missing)
    monkeypatch.setattr(platform, "processor", lambda: processor)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert native._processor.__wrapped__() == expected
