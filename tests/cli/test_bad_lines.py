"""Bad command lines and surroundings: one line, exit code 2, nothing written."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.small import SPEC

LINES = [
    ("decompse spec.yaml", "No such command 'decompse'. Did you mean 'decompose'?"),
    ("run", "Missing argument 'experiment'"),
    ("run small --fidelty smoke", "No such option: --fidelty (Possible options: --fidelity)"),
    ("run small --fid smoke", "No such option: --fid"),
    ("run small --fidelity smok", "'smok' is not one of 'smoke', 'standard', 'paper'"),
    ("run small more", "unexpected extra argument"),
    (
        "run small --fidelity smoke --fidelity=paper",
        "--fidelity: got '2 values'; allowed: one value",
    ),
    ("sweep spec.yaml --set n=1 --set n=2 --seed 1 --seed 1", "--seed: got '2 values'"),
    ("run smal", "experiment: got 'smal'; allowed: small (did you mean small?)"),
    ("run \0", "experiment: got '\\x00'; allowed: small"),
    ("run small --seed-offset -1", "'--seed-offset': Input should be greater than or equal to 0"),
    (
        "step judg small",
        "step: got 'judg'; allowed: rehearse, simulate, predict, tabulate, judge, plot,",
    ),
    ("step simulate small --part 4/3", "--part: got '4/3'; allowed: i/N"),
    ("step simulate small --output spec.yaml/x", "spec.yaml/x: got 'Not a directory'"),
    ("step tabulate small", "simulation.nc"),
    ("step judge small", "effects.nc"),
    ("step report", "nothing to report"),
    ("step publish", "results/standard: got 'no finished run'"),
    ("table small", "No such command 'table'"),
    ("run Small", "experiment: got 'Small'; allowed: small (did you mean small?)"),
    ("decompose small#x", "small#x"),
    ("claims --paper 2601.22767", "--paper: got '2601.22767'; allowed: "),
    ("schema decompos", "'decompos' is not one of 'experiment', 'problem', 'decompose'"),
    ("new my-question", "name: got 'my-question'; allowed: lower-case letters"),
    ("new class", "name: got 'class'; allowed: lower-case letters"),
    ("new small", "name: got 'small'; allowed: a name not yet used in experiments/"),
    ("decompose none.yaml", "none.yaml: file not found"),
    ("decompose small", "small: this is an experiment; run `sims run small`"),
    ("decompose swept.yaml", "swept.yaml: this is a sweep; run `sims sweep swept.yaml`"),
    ("sweep experiments/small/experiment.yaml", "run `sims run experiments/small`"),
    ("run spec.yaml", "spec.yaml: this is a problem; run `sims decompose spec.yaml`"),
    ("decompose .", ".: got 'Is a directory'; allowed: a text file"),
    ("decompose \0", "allowed: a text file in UTF-8"),
    ("decompose spec.yaml --rel-mcse x", "'--rel-mcse': Input should be a valid number"),
    ("decompose spec.yaml --rel-mcse inf", "simulation.rel_mcse: got inf; allowed: a finite numb"),
    ("decompose spec.yaml --rel-mcse 0", "simulation.rel_mcse: got 0.0; allowed: greater than 0"),
    ("decompose spec.yaml --seed -3", "simulation.seed: got -3; allowed: greater than or equal"),
    ("sweep spec.yaml --output a.txt", "--output: got 'a.txt'; allowed: a file whose name"),
    ("sweep spec.yaml --shards 1", "'--shards': Input should be greater than or equal to 2"),
    ("sweep spec.yaml --shards 2 --shard 1/2", "--shard, --shards: got 'both'; allowed: one of"),
    (
        "sweep spec.yaml --shards 2 --output {x}.nc",
        "--output: got '{x}.nc'; allowed: letters, digits",
    ),
    ("sweep spec.yaml other.yaml", "arguments: got 'other.yaml'; allowed: one file"),
    ("sweep spec.yaml --shard 1/", "--shard: got '1/'; allowed: i/N"),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_the_command_line(refuses, line, words):
    Path("swept.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": {"grid": {}}}))
    refuses(words, *line.split(" "))


@pytest.mark.parametrize("options", ["--executor slurm", "--workflow-profile=profiles/slurm/"])
def test_slurm_without_its_plugin(refuses, monkeypatch, options):
    monkeypatch.setattr("sims.cli.sharded.find_spec", lambda name: None)
    line = ("sweep", "spec.yaml", "--shards", "2", "--", *options.split(" "))
    refuses("--shards: got 'slurm'; allowed: an installed executor; this is the extra", *line)


@pytest.mark.parametrize(
    "option", ["--nonsense", "--executor=slurmm", "--jobs=two", "--resources=3"]
)
def test_options_that_snakemake_does_not_know(refuses, option):
    words = "sweep: options of snakemake, after --: "
    refuses(words, "sweep", "spec.yaml", "--shards", "2", "--", option)


def test_a_package_that_a_light_install_leaves_out(refuses, monkeypatch):
    monkeypatch.setitem(sys.modules, "snakemake.cli", None)
    words = "snakemake is not installed: install sims with all its requirements, by `pip install`"
    refuses(words, "sweep", "spec.yaml", "--shards", "2")


def test_a_folder_that_snakemake_cannot_name(refuses, monkeypatch):
    Path("br{1}").mkdir()
    monkeypatch.chdir("br{1}")
    refuses("without { and }", "sweep", "../spec.yaml", "--shards", "2")


def test_the_environment_and_the_machine(refuses, monkeypatch):
    def full(*arguments):
        raise MemoryError("Unable to allocate 8 EiB\nfor an array")

    monkeypatch.setattr("sims.cli.claims.experiments", full)
    words = "memory: got 'Unable to allocate 8 EiB"
    refuses(words, "experiments")
    monkeypatch.setenv("SIMS_HOST_DEVICES", "two")
    words = "SIMS_HOST_DEVICES: got 'two'; allowed: an integer from 1 to 9999"
    refuses(words, "decompose", "spec.yaml", "--dry")
