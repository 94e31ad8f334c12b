"""Tables of real rows: what their users rely on."""

import hashlib

import numpy as np
import pytest

from sims.problem.tables import TABLES, load_table, place
from tests.by_hand import refused


@pytest.mark.parametrize(("name", "count", "rank"), [("digits", 1797, 61), ("text", 2291, 64)])
def test_distinct_rows_in_principal_components_of_mean_variance_1(name, count, rank):
    """To the rounding of float16, in which they are stored; one digest names the file."""
    rows = load_table(name)
    assert rows.shape == (count, 64)
    assert rows.dtype == np.float64
    assert len(np.unique(rows, axis=0)) == count
    spectrum = rows.var(0)
    assert (np.diff(spectrum[:rank]) < 0).all()
    assert not rows[:, rank:].any()
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.diag(spectrum), atol=2e-4)
    assert spectrum.mean() == pytest.approx(1, abs=1e-4)
    assert hashlib.sha256(place(name).read_bytes()).hexdigest() == TABLES[name]
    assert place(name).stat().st_size < 300_000


def test_an_unknown_table_is_refused():
    with refused(r"table: got 'texts'; allowed: digits, text \(did you"):
        load_table("texts")
