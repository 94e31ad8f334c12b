"""``sims inspect``: what is printed, written, compared and refused by a limit."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.inspect import capture, inspect, removal_losses, scalars
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


def test_published_models_stand_beside_the_measured_one(folder, capsys):
    """Medians of layers of what the published figure has; none where only weights are read."""
    run("inspect", "a")
    assert "SmolLM2" not in capsys.readouterr().out
    run("inspect", "a", "--activations", "x.npz")
    (row,) = re.findall(r"SmolLM2 +(.*\S)", capsys.readouterr().out)
    published = Path(__file__).parents[2] / "results/published/trained_models/panels.nc"
    passes = read(published)[["model", "tokens", "kept", "written_kept"]].to_dataframe()
    passes = passes.query("model == 'SmolLM2' and tokens == 'all tokens'")
    kept, written = passes.kept.median(), passes.written_kept.median()
    assert row.split() == [str(len(passes)), f"{kept:.2f}", f"{written:.2f}"]


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


def test_the_head_of_least_loss_is_chosen_on_every_second_sequence(folder, capsys):
    """Head 1 looks best where heads are chosen, and costs 3 to 5 nats elsewhere."""
    losses = np.full((H, 6), 2.0)
    losses[1] = [1, 3, 1, 4, 1, 5]
    tokens = inputs().astype(np.float32)
    np.savez("x.npz", **{"0": tokens, "0.loss": losses})
    assert run("inspect", "a", "--activations", "x.npz") == 0
    printed = capsys.readouterr().out
    change = "with head 1 of layer 0 at its mean the loss changes by +4 ± 0.6 nats a token"
    assert change in printed.splitlines()[0]
    data = inspect("a", activations={"0": tokens, "0.loss": losses})
    np.testing.assert_allclose(data.removal_loss.values[0], losses.mean(1))
    for wrong in (losses[1:], losses[:, :3], losses + np.nan):
        with pytest.raises(InputError, match=r"0\.loss"):
            inspect("a", activations={"0": tokens, "0.loss": wrong})


def test_losses_of_removal_are_those_of_a_model_whose_bias_has_the_mean():
    """Of one layer with tokens read from an embedding, and a loss of squares."""
    torch = pytest.importorskip("torch")

    class Layered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = SimpleNamespace(num_attention_heads=2)
            self.h = torch.nn.ModuleDict({"0": torch.nn.ModuleDict()})
            attention = self.h["0"]["attn"] = torch.nn.Module()
            attention.c_attn = torch.nn.Linear(12, 4)
            attention.c_proj = torch.nn.Linear(4, 4)

        def forward(self, values, labels):
            output = self.h["0"]["attn"].c_proj(values)
            return SimpleNamespace(loss=((output - labels) ** 2).mean())

    torch.manual_seed(0)
    model = Layered().eval()
    batch = {"values": torch.randn(5, 7, 4), "labels": torch.randn(5, 7, 4)}
    found = removal_losses(model, batch)["0.loss"]
    weight, bias = (p.detach() for p in model.h["0"]["attn"].c_proj.parameters())
    values, labels = (array.double() for array in batch.values())
    for head, columns in enumerate((slice(0, 2), slice(2, 4))):
        changed = values.clone()
        changed[..., columns] = values[..., columns].mean((0, 1))
        first, second = (
            ((x @ weight.double().T + bias - labels) ** 2).mean((1, 2)) for x in (changed, values)
        )
        np.testing.assert_allclose(found[head], first - second, atol=1e-6)
    with pytest.raises(InputError, match="labels"):
        removal_losses(model, {"values": batch["values"]})
    with pytest.raises(InputError, match="training mode"):
        removal_losses(model.train(), batch)
