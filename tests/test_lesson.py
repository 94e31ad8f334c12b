"""The lesson and the table of README, recomputed from the published rows of problems alone."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import beta

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COUNTED = {"holds": 1, "fail": -1, "level": 2, "undecided": 0}
ASKED = {"hdi-monotone": {"shifted": 0}, "extremes": {"fits": 1}}
"""Problems that a question is about, if not all."""


class Problems:
    """Problems of an experiment, a row each."""

    def __init__(self, name):
        path = ROOT / "results/published" / name / "effects.nc"
        with xr.open_dataset(path, engine="h5netcdf") as data:
            labels = [data[label].values for label in ("effect", "quantity", "pair")]
            names = zip(*labels, strict=True)
            columns = pd.MultiIndex.from_tuples((str(e), str(q), p) for e, q, p in names)
            self.numbers = pd.DataFrame(data["number"].values.T, columns=columns)
            self.drawn = pd.DataFrame(data["drawn"].values.T, columns=data["parameter"].values)

    def of(self, id):
        """Calls, sizes and components of the problems that a question is about."""
        (effect,) = {e for e, quantity, _ in self.numbers if quantity == f"call: {id}"}
        rows = self.numbers[effect]
        about = np.isfinite(rows["value"]).all(axis=1)
        for name, value in ASKED.get(id, {}).items():
            about &= self.drawn[name] == value
        return rows.loc[about].droplevel(1, axis=1).rename(columns={f"call: {id}": "call"})


def digits(number):
    return f"{float(f'{100 * number:.2g}'):g}".replace("-", "−")


def shares(rows):
    return {name: (rows["call"] == call).mean() for name, call in COUNTED.items()}


def quartiles(numbers):
    return [digits(np.quantile(numbers, place)) for place in (0.5, 0.25, 0.75)]


def numbers_in(text):
    return re.findall(r"−?\d[\d.]*(?=[ –]?%| to |–\d)", text)


def test_the_lesson_follows_from_the_problems():
    lesson = README.split("<!--answers:learnt-->")[1].split("<!--end-->")[0]
    house, values = Problems("house"), Problems("values")
    drawn, alike, steps = (
        house.of(id) for id in ("random-aligned", "random-aligned-law", "hdi-monotone")
    )
    chance, kept = shares(house.of("chance")), house.of("not-heads-alone-law")["size"]
    bias, variance = (drawn[f"component: {part}"].median() for part in ("squared bias", "variance"))
    failing = (house.of("hdi-monotone-law")["call"] == -1).sum()
    decided = (house.of("hdi-monotone-law")["call"] != 0).sum()
    most = beta.ppf(0.95, failing + 1, decided - failing)
    ways = [
        values.of(id)["size"]
        for id in ("values-shared", "outputs-half", "outputs-apart", "values-half")
    ]
    expected = [
        *(
            "1",
            digits(shares(drawn)["holds"]),
            digits(shares(drawn)["fail"]),
            *quartiles(drawn["size"]),
        ),
        *(digits(chance["holds"]), digits(chance["fail"])),
        *(
            digits(shares(alike)["holds"]),
            digits(shares(alike)["fail"]),
            *quartiles(alike["size"]),
        ),
        *("1", digits(shares(steps)["fail"]), digits(most)),
        *(digits(-kept.median()), digits(bias), digits(variance)),
        *(digits(way.median()) for way in ways),
        *quartiles(values.of("values-apart")["size"]),
    ]
    assert numbers_in(lesson) == expected
    assert house.drawn["beats"].mean() < 0.05  # "nearly all"


def test_the_rows_of_the_table_follow_from_the_problems():
    house = Problems("house")
    answers = json.loads((ROOT / "results/published/answers.json").read_text("utf-8"))
    questions = {
        row.get("question", ""): row for row in answers if row.get("experiment") == "house"
    }
    lines = [line.split("|") for line in README.splitlines() if line.startswith("|")]
    checked = 0
    for _, asked, _, often, rest, much, _ in (line for line in lines if len(line) == 7):
        row = questions.get(re.sub(r" \(.*", "", asked).replace("%", " %"))
        if row is None or row["result"]["kind"] != "share":
            continue
        rows = house.of(row["id"])
        count, total = shares(rows), len(rows)
        sure = count["holds"] + row["result"]["simulated"]["level_holds"] * count["level"]
        low = beta.ppf(0.025, sure * total, total - sure * total + 1)
        maybe = (sure + count["undecided"]) * total
        high = beta.ppf(0.975, maybe + 1, total - maybe) if maybe < total else 1.0
        others = [digits(count[name]) for name in ("fail", "level", "undecided")]
        assert numbers_in(often) == [digits(sure), digits(low), digits(high)]
        assert numbers_in(rest) == others
        assert f" of {total} " in often
        assert numbers_in(much) == quartiles(rows["size"])
        checked += 1
    assert checked >= 4
