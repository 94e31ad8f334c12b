"""The store of finished results."""

import subprocess
import sys

import numpy as np
import xarray as xr

from sims.montecarlo import store


def test_store(tmp_path):
    data = xr.Dataset(
        {"mse": (("batch", "size"), np.arange(8.0).reshape(4, 2))}, {"size": [1, 2]}, {"seed": 3}
    )
    store.save(data, tmp_path / "a-simulation-me-1.npz")
    xr.testing.assert_identical(store.load(tmp_path / "a-simulation-me-1.npz"), data)
    text = xr.Dataset(coords={"order": np.array(["first", "exact"], object)})
    store.save(text, tmp_path / "a-theory-me-0.npz")
    assert store.load(tmp_path / "a-theory-me-0.npz").equals(text)
    store.save(data, tmp_path / "a-simulation-other-1.npz")
    store.save(data, tmp_path / "a-simulation-me-1" / "0-1.npz")
    kept = {"a-theory-me-0.npz", "a-simulation-other-1.npz"}
    for name in ("a-simulation-me-2.npz", "b-more-simulation-me-2.npz"):
        store.save(data, tmp_path / name)
        kept.add(name)
    store.prune(tmp_path, "simulation", "me", "2")
    assert {p.name for p in tmp_path.iterdir()} == kept
    assert store.load(tmp_path / "none.npz") is None


def test_store_needs_no_jax():
    code = "import sys, sims.montecarlo.store; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
