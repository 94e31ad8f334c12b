"""Exact theory tells how far it is: to a callback, on a terminal, and to nobody otherwise."""

import io
import sys

import pytest
import yaml

from sims.cli import decompose
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.theory import predict
from sims.weights import FACTORIES
from tests.cli.small import SPEC, run

X = [[0.1, 0.2], [0.3, -0.1]]


def problem(design, rule, count):
    frames = FRAMES["haar"](2, count, 1)
    return Task(design, TARGETS["rbf"](2, features=4), 0.5), Heads(frames, rule, 0.9), 200, X


CASES = {
    "gaussian design": (DESIGNS["isotropic"](2), "gaussian", 2, 6),
    "cube": (DESIGNS["cube"](2), "gaussian", 2, 8),
    "α-entmax": (DESIGNS["isotropic"](2), FACTORIES["entmax"](nu=1.0, scores="distance"), 1, 2),
    "top-k": (DESIGNS["isotropic"](2), FACTORIES["top_k"](5, scores="distance"), 1, 2),
}


@pytest.mark.parametrize(("design", "rule", "count", "parts"), CASES.values(), ids=CASES)
def test_a_callback_is_told_of_every_part(capfd, design, rule, count, parts):
    told = []
    data = predict(
        *problem(design, rule, count), order="exact", rtol=0.05,
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert bool(data["converged"].all())
    assert {total for _, total in told} == {parts}
    assert told[-1] == (parts, parts)
    assert len(told) > 1
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert capfd.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_decompose_shows_it_on_a_terminal_alone(tmp_path, monkeypatch, capsys):
    shown = []

    class Recorded(decompose.Progress):
        def update(self, done, total=None):
            shown.append((self.show, self.what, done, total))
            super().update(done, total)

    monkeypatch.setattr(decompose, "Progress", Recorded)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SPEC | {"theory": {"order": "exact"}}))
    assert run("decompose", "spec.yaml", "--json") == 0
    assert shown
    assert not any(show for show, *_ in shown)
    assert capsys.readouterr().err == ""
    shown.clear()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("decompose", "spec.yaml", "--json") == 0
    assert all(show and what == "exact theory" for show, what, *_ in shown)
    assert shown[-1][2] == shown[-1][3]
