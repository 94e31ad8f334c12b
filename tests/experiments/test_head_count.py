"""The experiment `head_count`: verdicts that can fail, on made-up variances."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from tests.experiments.helpers import batches_of, check_figure, results_of, verdicts

ALIGNED = ("not-heads-alone", "aligned heads")
LAW = ("not-heads-alone", "any angle")
WIDER = ("not-heads-alone", "wider angle at fixed H")
ADDING = ("adding-heads", "fixed head dimension")


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("head_count")


def made(experiment, correlation=lambda angle: np.cos(np.deg2rad(angle)) ** 2, off=1.0, error=1e-5):
    """Ratios ρ + (1 − ρ)/H of simulation, ``off`` times theory's but for aligned heads."""
    estimates, predictions = {}, {}
    for index, point in enumerate(experiment.points):
        angle, heads = (point.coordinates[k] for k in ("heads.frames.angle", "heads.count"))
        rho = correlation(angle)
        ratio = rho + (1 - rho) / heads
        terms = {"ensemble_variance": 2 * ratio * (off if angle else 1.0), "variance": 2.0}
        data = batches_of(terms, index)
        if rho == 1.0:  # one head, in every batch
            data["ensemble_variance"] = data["variance"]
        estimates[point.name] = data
        theory = {"ensemble_variance": 2 * ratio, "variance": 2.0}
        theory |= {f"{k}_error": error * v for k, v in theory.items()}
        row = xr.Dataset({k: ("order", [v]) for k, v in theory.items()}, {"order": ["exact"]})
        predictions[point.name] = row
    return results_of(experiment, estimates, predictions)


def test_claims_hold_where_they_are_true(experiment):
    verdict = verdicts(experiment, made(experiment))
    # cos² 30° is so small a correlation that the last doubling removes less than a tenth.
    assert verdict == dict.fromkeys((ALIGNED, LAW, WIDER, ADDING), "supported")


def test_ratios_off_theory_are_refuted(experiment):
    verdict = verdicts(experiment, made(experiment, off=1.02))
    assert (verdict[LAW], verdict[ALIGNED]) == ("refuted", "supported")
    assert verdicts(experiment, made(experiment, error=0.01))[LAW] == "inconclusive"


def test_aligned_heads_that_differ_are_refuted(experiment):
    assert verdicts(experiment, made(experiment, lambda angle: 0.9))[ALIGNED] == "refuted"


def test_angles_that_do_not_matter_and_heads_that_do_are_refuted(experiment):
    flat = made(experiment, lambda angle: 1.0 if angle == 0 else 0.02 + 0.001 * (angle > 60))
    verdict = verdicts(experiment, flat)
    assert (verdict[WIDER], verdict[ADDING]) == ("refuted", "refuted")


def test_figure_and_caption(experiment):
    caption = " ".join(check_figure(experiment, made(experiment)).split())
    assert "the last doubling of the heads removes 2" in caption
