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
    store.save(data, tmp_path / "a-simulation-1.npz")
    xr.testing.assert_identical(store.load(tmp_path / "a-simulation-1.npz"), data)
    text = xr.Dataset(coords={"order": np.array(["first", "exact"], object)})
    store.save(text, tmp_path / "a-theory-0.npz")
    assert store.load(tmp_path / "a-theory-0.npz").equals(text)
    store.save(data, tmp_path / "a-simulation-2.npz")
    store.prune(tmp_path, "simulation", "simulation-2")
    assert {p.name for p in tmp_path.iterdir()} == {"a-theory-0.npz", "a-simulation-2.npz"}
    assert store.load(tmp_path / "none.npz") is None


def test_store_needs_no_jax():
    code = "import sys, sims.montecarlo.store; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
