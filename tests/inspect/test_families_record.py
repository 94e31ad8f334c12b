"""Forward passes of `sims inspect` against outputs of transformers (benchmarks/families.py)."""

import json

import numpy as np
import pytest

from sims.inspect import Model, inspect, layers
from sims.inspect.families import FAMILIES
from sims.inspect.patterns import projections, rule_of, weights
from tests.inspect.models import RECORD, drawn, write

ARRAYS = dict(np.load(RECORD)) if RECORD.is_file() else {}
EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon")
NAMES = sorted({key.partition(":")[0] for key in ARRAYS})


@pytest.fixture(params=NAMES)
def recorded(request, tmp_path):
    """A family's tiny model on disk, and its recorded arrays by module, pass and kind."""
    own = {k.split(": ")[1]: v for k, v in ARRAYS.items() if k.startswith(f"{request.param}: ")}
    config = json.loads(own.pop("config").item())
    folder = write(tmp_path / "model", drawn(json.loads(own.pop("shapes").item())), config)
    return folder, {tuple(key.split()): values.astype(float) for key, values in own.items()}


def centred(x):
    return x - x.mean(0)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_record(family):
    """`make peers` writes the record: add the family to benchmarks/families.py."""
    assert family in {name.split()[0] for name in NAMES}


def test_outputs_of_attention_are_those_of_transformers(recorded):
    folder, arrays = recorded
    model = Model(folder)
    found = list(layers(model))
    assert {layer.module for layer in found} == {module for module, *_ in arrays}
    for layer in found:
        rule = rule_of(model.config, None, layer.number or 0)
        for time in {time for module, time, _ in arrays if module == layer.module}:
            query, key, value = projections(layer, arrays[layer.module, time, "input"], rule)
            heads = weights(layer, query, key, rule) @ value[layer.key_head]
            output = (heads @ layer.matrices.output).sum(0)
            expected = arrays[layer.module, time, "output"]
            np.testing.assert_allclose(centred(output), centred(expected), atol=1e-4)


def test_gains_before_attention_are_folded_as_in_transformers(recorded):
    """Folded maps of the normalised block input are those of the attention input, plus a shift."""
    folder, arrays = recorded
    model = Model(folder)
    epsilon = next(filter(None, map(model.config.get, EPSILONS)), 1e-5)
    for layer in layers(model):
        before, x = (arrays[layer.module, "0", kind] for kind in ("block", "input"))
        if layer.gain is None:
            np.testing.assert_array_equal(before, x)
            continue
        before = before - layer.centred * before.mean(-1, keepdims=True)
        before /= np.sqrt((before**2).mean(-1, keepdims=True) + epsilon)
        for name in ("query", "key", "value"):
            folded = before @ getattr(layer.folded, name)
            expected = x @ getattr(layer.normed, name)
            np.testing.assert_allclose(
                *(v - v.mean(1, keepdims=True) for v in (folded, expected)), atol=1e-3
            )


def test_reports_of_recorded_models_have_no_remarks(recorded):
    notes = inspect(recorded[0]).attrs["notes"]
    assert notes in ("", "Not in the file: attention of layers 0.")  # the latter of Jamba
