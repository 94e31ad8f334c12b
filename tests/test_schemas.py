"""Schemas for editors: those of the models, and every YAML file points to its own and fits it."""

import json
from pathlib import Path

import jsonschema
import pytest

from sims.cli import main
from sims.documents import read_yaml

KINDS = {
    "experiments/*/experiment.yaml": "experiment",
    "experiments/*/variables.yaml": "variables",
    "papers/*.yaml": "paper",
    "docs/examples/*.yaml": "decompose",
}
FILES = sorted((path, kind) for glob, kind in KINDS.items() for path in Path().glob(glob))


@pytest.mark.parametrize(
    "kind", ["experiment", "problem", "decompose", "sweep", "paper", "variables"]
)
def test_the_committed_schema_is_that_of_the_models(kind, capsys):
    """If not: ``sims schema KIND > schemas/KIND.json``."""
    assert main(["schema", kind]) == 0
    assert capsys.readouterr().out == Path(f"schemas/{kind}.json").read_text(encoding="utf-8")


def test_every_yaml_file_is_of_a_kind():
    of = [
        p
        for folder in ("experiments", "papers", "docs/examples")
        for p in Path(folder).rglob("*.yaml")
    ]
    assert sorted(of) == [path for path, _ in FILES]


@pytest.mark.parametrize(("path", "kind"), FILES, ids=str)
def test_a_file_points_to_its_schema_and_fits_it(path, kind):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    before, _, target = first.partition("$schema=")
    assert before == "# yaml-language-server: "
    schema = path.parent / target
    assert schema.resolve() == Path(f"schemas/{kind}.json").resolve()
    checker = jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert [error.message for error in checker.iter_errors(read_yaml(path))] == []


def test_a_schema_refuses_what_the_suite_refuses():
    checker = jsonschema.Draft202012Validator(
        json.loads(Path("schemas/decompose.json").read_text())
    )
    data = read_yaml("docs/examples/decompose.yaml")
    data["problem"]["heads"]["bandwith"] = 0.7
    assert not checker.is_valid(data)


def test_a_new_experiment_points_to_the_schema_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "first"]) == 0
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/experiment.json").write_text("{}")
    assert main(["new", "second"]) == 0
    first, second = (
        Path(f"experiments/{name}/experiment.yaml").read_text() for name in ("first", "second")
    )
    assert second == f"# yaml-language-server: $schema=../../schemas/experiment.json\n{first}"
