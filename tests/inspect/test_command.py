"""``sims inspect``: what is printed, written, compared and refused by a limit."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.inspect import capture, inspect, scalars
from sims.study.results import read
from tests.cli.small import run
from tests.inspect.models import LAYOUTS, D, H, inputs, matrices, renumbered, write

CONFIG = {"num_attention_heads": H, "model_type": "bert"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two models of two layers, and inputs of the first layer."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a", "b")):
        first, second = (LAYOUTS["bert"](*matrices(seed=2 * number + i)) for i in range(2))
        write(tmp_path / name, first | renumbered(second, 1), CONFIG)
    np.savez("x.npz", **{"0": inputs().astype(np.float32)})
    return tmp_path


def test_what_is_printed_is_what_is_written(folder, capsys):
    given = "a", "--activations", "x.npz"
    assert run("inspect", *given, "--output", "out/a.nc") == 0
    printed = capsys.readouterr().out
    data = read("out/a.nc")
    assert printed.splitlines()[-2:] == [data.attrs["sentence"], "out/a.nc"]
    assert printed.startswith(f"{data.attrs['advice']}\n")
    assert "layer 1 without activations" in data.attrs["sentence"]
    assert sorted(p.suffix for p in folder.glob("out/*")) == [".nc", ".pdf", ".png", ".svg"]
    row = [line for line in printed.splitlines() if line.startswith(" 0 ")][-1].split()
    kept, error = data.noise_kept.values[0], data.noise_kept_mcse.values[0]
    shown, digit = row[2].rstrip(")").split("(")
    assert float(shown) == pytest.approx(kept, abs=error)
    assert int(digit) == pytest.approx(error * 10 ** len(shown.partition(".")[2]), abs=0.5)
    assert run("inspect", *given, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["sentence"] == data.attrs["sentence"]
    assert content["layers"][0]["noise_kept"] == kept
    assert content["layers"][1]["noise_kept"] is None
    assert np.shape(content["layers"][0]["noise_correlation"]) == (H, H)


def test_a_model_beside_another_and_beside_a_written_report(folder, capsys):
    run("inspect", "b", "--output", "b.nc")
    assert capsys.readouterr().out.startswith("Use --activations: weights alone do not say")
    one, two = (scalars(inspect(name))["overlap_excess"] for name in "ab")
    for other in ("b", "b.nc"):
        assert run("inspect", "a", "--compare", other) == 0
        printed = capsys.readouterr().out
        assert "b/model.safetensors minus a/model.safetensors" in printed
        for change in two - one:
            assert f"{change:+.3g}" in printed


def test_each_model_of_a_comparison_has_its_activations(folder, capsys):
    np.savez("y.npz", **{"0": inputs(seed=3) / 3, "attention_mask": np.ones((12, 20))})
    one, two = (inspect(m, activations=f"{x}.npz").noise_kept.values[0] for m, x in ("ax", "by"))
    given = "--activations", "x.npz", "--compare", "b", "--activations", "y.npz"
    assert run("inspect", "a", *given) == 0
    changes = re.findall(r"([+-][0-9.]+)\(", capsys.readouterr().out)
    assert any(float(change) == pytest.approx(two - one, abs=0.006) for change in changes)


def test_a_config_class_of_transformers_fills_what_a_config_leaves_out(folder, monkeypatch):
    """Where it is installed; a class that refuses the config is as none."""

    class Config(dict):
        @classmethod
        def from_dict(cls, config):
            assert config["model_type"] == "bert"
            return cls(num_attention_heads=2, num_key_value_heads=None)

        def to_dict(self):
            return self

    package = SimpleNamespace(CONFIG_MAPPING={"bert": Config})
    monkeypatch.setitem(sys.modules, "transformers", package)
    assert set(inspect("a").heads.values) == {H}  # as config.json says
    Path("a/config.json").write_text('{"model_type": "bert"}')
    assert set(inspect("a").heads.values) == {2}
    package.CONFIG_MAPPING.clear()
    with pytest.raises(InputError, match="number of heads"):
        inspect("a")


def test_a_number_above_its_limit_ends_in_exit_code_1(folder, capsys):
    excess = scalars(inspect("a"))["largest_overlap_excess"]
    low, high = (excess.max() + shift for shift in (-1e-6, 1e-6))
    assert run("inspect", "a", "--fail-above", f"largest_overlap_excess={low}") == 1
    layer = int(np.argmax(excess))
    assert f"layer {layer}: largest_overlap_excess" in capsys.readouterr().out
    assert run("inspect", "a", "--fail-above", f"largest_overlap_excess={high}") == 0


def test_capture_takes_the_inputs_of_each_layer():
    """Of torch's encoder, whose tokens come first: those that the layers before it put out."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(D, H, 8)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.tensor(inputs(3, 5), dtype=torch.float32).swapaxes(0, 1)
    with pytest.raises(InputError, match="training mode"):
        capture(model, {"src": x})
    found = capture(model.eval(), {"src": x})
    second = model.layers[0](x).detach()
    for name, tokens in (("0", x), ("1", second)):
        np.testing.assert_allclose(found.pop(name), tokens.swapaxes(0, 1), atol=1e-5)
    assert not found
    assert not model.layers[0].self_attn._forward_pre_hooks
