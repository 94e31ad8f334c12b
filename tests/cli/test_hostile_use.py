"""Hostile paths, JSON files and options: one line and exit code 2, whatever stands there."""

import json
import os
import threading
from pathlib import Path

import pytest
import yaml

from sims.cli.commands import make_parser
from sims.errors import InputError
from sims.files import write_json
from sims.report.seeds import other_seeds
from tests.cli.small import EXPERIMENT, SPEC, run

VERDICT = {
    "claim": "c", "experiment": "small", "regime": "all", "statement": "S.", "verdict": "supported",
    "effect": 0.1, "interval": [0.0, 0.2], "margin": 0.5, "level": 0.95, "replicates": 8,
    "reason": "R.", "p_value": 0.01, "adjusted": 0.01, "needs": {}, "paper": "2605.20271",
    "kind": None, "over": None, "contract": None, "edited": False,
}  # fmt: skip


def refused(capsys, *arguments):
    """The one line that a command ends with."""
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    return err


BYTES = [
    (b"\xff\xfeproblem: 1", "got 'no UTF-8 at byte 0'; allowed: a text file in UTF-8"),
    (b"problem: \xe9", "got 'no UTF-8 at byte 9'; allowed: a text file in UTF-8"),
    ("problem: 1".encode("utf-16"), "got 'no UTF-8 at byte 0'; allowed"),
    (b"a: \x00", "got 'a mistake at line 1: "),
    (b"a: \x1b[31m", "got 'a mistake at line 1: "),
    (b"\t- a", "got 'a mistake at line 1: "),
    (b"", "got 'NoneType'; allowed: a mapping"),
    (b"%YAML 9.9\n---\na: 1", "a mistake at line 1: "),
]


@pytest.mark.parametrize(("content", "words"), BYTES)
def test_bytes_that_are_no_yaml(folder, capsys, content, words):
    (folder / "spec.yaml").write_bytes(content)
    assert words in refused(capsys, "decompose", "spec.yaml", "--dry")
    (folder / "experiments/small/experiment.yaml").write_bytes(content)
    assert words in refused(capsys, "run", "small", "--dry")
    assert words in refused(capsys, "experiments")
    (folder / "papers").mkdir()
    (folder / "papers/2605.20271.yaml").write_bytes(content)
    assert words in refused(capsys, "claims")


def test_a_byte_order_mark_is_no_part_of_the_file(folder, capsys):
    (folder / "spec.yaml").write_bytes(b"\xef\xbb\xbf" + yaml.safe_dump(SPEC).encode())
    assert run("decompose", "spec.yaml", "--dry") == 0


def test_what_is_no_file_of_a_sensible_size(folder, capsys):
    """Nothing is waited for: a FIFO without a writer would hang whoever opens it."""
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    with Path("large").open("wb") as file:
        file.truncate(100 * 2**20)
    for path, words in (
        ("pipe", "pipe: got 'a pipe or device'; allowed: a text file in UTF-8 of at most 4 MiB"),
        ("/dev/zero", "/dev/zero: got 'a pipe or device'"),
        (".", ".: got 'a folder'"),
        ("large", "large: got '104,857,600 bytes'; allowed: a text file in UTF-8 of at most 4 MiB"),
        ("loop", "loop: got 'Too many levels of symbolic links'"),
        ("spec.yaml/spec.yaml", "got 'Not a directory'"),
        ("x" * 5000, "got 'File name too long'"),
        ("a\nb", "a b: got 'No such file or directory'"),
        ("\x1b[31m", "got 'No such file or directory'"),
        ("\udcff", "\\udcff: got 'No such file or directory'"),
    ):
        done = []
        reader = threading.Thread(
            target=lambda path=path, done=done: done.append(refused(capsys, "decompose", path)),
            daemon=True,
        )
        reader.start()
        reader.join(20)
        assert done, f"{path} hangs"
        assert words in done[0]


UNSEALED = ("", "[", "[" * 100_000, "\xff", "3", "{}", "[3]", "[[]]", "[{}]", "9" * 5000)
SEALED = [
    ("claim", 3, "0.claim: got 3; allowed: a valid string"),
    ("claim", None, "0.claim: got None; allowed: a valid string"),
    ("verdict", "maybe", "0: verdict: got 'maybe'; allowed: "),
    ("verdict", "refutd", "(did you mean refuted?)"),
    ("margin", "0.5", "0.margin: got '0.5'; allowed: a valid number"),
    ("margin", True, "0.margin: got True; allowed: a valid number"),
    ("interval", [0.0], "0.interval.1: got "),
    ("interval", 3, "0.interval: got 3; allowed: a valid array"),
    ("effect", None, "allowed: inconclusive (numbers are missing)"),
    ("p_value", 2.0, "p-value of c: got 2.0; allowed: 0 to 1"),
    ("needs", [], "0.needs: got []; allowed: a"),
    ("edited", "yes", "0.edited: got 'yes'; allowed: a valid boolean"),
    ("marign", 0.5, "0.marign: got "),
]
WHOLE = "whole as its step wrote it: run that step again"


@pytest.mark.parametrize("text", [*UNSEALED, json.dumps([VERDICT])])
def test_a_file_that_is_no_ledger(folder, capsys, text):
    home = folder / "results" / "smoke"
    home.mkdir(parents=True)
    (home / "ledger.json").write_text(text, encoding="latin-1")
    for command in ("claims", "seeds", "report"):
        line = refused(capsys, command, "--fidelity", "smoke")
        assert line.startswith(f"sims {command}: results/smoke/ledger.json")
        assert WHOLE in line


@pytest.mark.parametrize(("key", "value", "words"), SEALED)
def test_a_ledger_of_other_rows(folder, capsys, key, value, words):
    path = folder / "results" / "smoke" / "ledger.json"
    write_json([VERDICT | {key: value}], path, "ledger.json of smoke")
    for command in ("claims", "seeds", "report"):
        assert words in refused(capsys, command, "--fidelity", "smoke")


@pytest.mark.parametrize("text", [*UNSEALED, '{"planted": 3}', '{"rows": [3]}'])
def test_a_file_beside_the_ledger_of_another_shape(folder, text):
    path = folder / "results" / "smoke" / "seeds.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=WHOLE):
        other_seeds(path.parent, "smoke", 1)


NUMBERS = [
    "-1",
    "",
    " ",
    "x",
    "1.5",
    "1e3",
    "1_000",
    "²",
    "٣",
    "nan",
    "9" * 5000,
    "\0",
    "a\nb",
    "0x1",
]
TEXTS = ["", " ", "\0", "a\0b"]
PATHS = [".", "experiments", "experiments/small/experiment.yaml/x", "spec.yaml/x"]


def hostile():
    """Every option of every command with hostile values."""
    commands = next(a for a in make_parser()._actions if a.dest == "command").choices
    for name, parser in commands.items():
        places = [a for a in parser._actions if not a.option_strings]
        filled = {a.dest: a.choices[0] if a.choices else "small" for a in places}
        filled |= {"spec": "spec.yaml"} if "spec" in filled else {}
        given = [filled[a.dest] for a in places if a.required]
        yield [name, *given, "--bogus"], "unknown argument: got '--bogus'; allowed: "
        yield [name, *filled.values(), "one", "more"], "unknown argument: got 'o"
        for action in parser._actions:
            if action.dest == "help" or action.nargs == 0:
                continue
            values = TEXTS
            if action.choices:
                values = [*TEXTS, "Smoke", "smok", "-1", "\n", "9" * 5000]
            elif action.dest in ("seed", "seed_offset", "count"):
                values = [*NUMBERS, *(["0"] if action.dest == "count" else [])]
            elif action.dest in ("shards", "turn"):
                values = [*NUMBERS, "0", "1001"]
            elif action.dest == "shard":
                values = [*NUMBERS, "0/3", "4/3", "1/", "/1", "1/2/3", "1/10001"]
            elif action.dest == "set":
                values = [*TEXTS, "=", "n", "n=", "=1", "n=1:2", "n=a:b:c", "n={", "n=[1]", "nn=1"]
            elif action.dest == "rel_mcse":
                values = [*(v for v in NUMBERS if v not in ("1.5", "1e3")), "0", "inf", "-inf"]
            elif action.dest == "output":
                values = [*TEXTS, *PATHS]
            for value in values:
                if action.option_strings:
                    arguments = [name, *given, f"{action.option_strings[0]}={value}"]
                else:
                    arguments = [name, value]
                yield arguments, "allowed: "


@pytest.mark.parametrize(
    ("arguments", "words"), list(hostile()), ids=lambda v: ascii(" ".join(v))[:60] if v else ""
)
def test_hostile_options_are_one_line(folder, capsys, arguments, words):
    assert words in refused(capsys, *arguments)
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["decompse", "spec.yaml"], "(did you mean decompose?)"),
        (["run", "smal"], "experiment: got 'smal'; allowed: small (did you mean small?)"),
        (["run", "small", "--fidelty=smoke"], "got '--fidelty'; allowed: -h, --help, --dry"),
        (["run", "small", "--fidelty=smoke"], "(did you mean --fidelity?)"),
        (["run", "small", "--fid", "smoke"], "unknown argument: got '--fid'"),
        (["run", "small", "--fidelity", "smokey"], "got 'smokey'; allowed: smoke, standard, paper"),
        (["schema", "experimnt"], "(did you mean experiment?)"),
        (["run", "small", "--seed-offset", str(10**12), "--dry"], ""),
        (["run", "experiments/small/effects.py"], "experiment: got "),
        (["run", "x" * 5000], "experiment: got 'xxx"),
        (["run", "a\nb"], r"experiment: got 'a\nb'; allowed: small"),
    ],
)
def test_the_nearest_word_is_named(folder, capsys, arguments, words):
    if words:
        assert words in refused(capsys, *arguments)
    else:
        assert run(*arguments) == 0


def test_an_output_that_cannot_be_written_is_said_before_work(folder, capsys, monkeypatch):
    """Permission is taken away by hand, since root has it all."""
    Path("closed").mkdir()
    real = os.access
    monkeypatch.setattr(
        "os.access", lambda path, mode: Path(path).name != "closed" and real(path, mode)
    )
    for path in ("closed/out.nc", "closed/deep/out.nc", "spec.yaml/out.nc", "closed"):
        assert f"{path}" in refused(capsys, "simulate", "small", "--output", path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "simulate.py, line 3: got \"KeyError: 'widths'\"; allowed: settings, in experiment.y"),
        ({"widths": 3}, "simulate.py, line 3: got \"TypeError: 'int' object is not iterable\""),
        ({"widths": [0]}, "simulate.py, line 3: got 'ZeroDivisionError: division by zero'"),
        ({"widths": ["x"]}, "simulate.py, line 3: got "),
    ],
)
def test_settings_that_the_experiments_own_code_cannot_use(folder, capsys, settings, words):
    own = folder / "experiments/small"
    (own / "simulate.py").write_text(
        "def units(experiment):\n    settings = experiment.settings\n"
        "    return {str(1 / w): None for w in settings['widths']}\n"
    )
    file = own / "experiment.yaml"
    file.write_text(yaml.safe_dump(EXPERIMENT | {"settings": settings}))
    for arguments in (["run", "small", "--dry"], ["run", "small"], ["simulate", "small"]):
        assert words in refused(capsys, *arguments)
    (own / "simulate.py").write_text("def units(experiment):\n    return 3 + broken\n")
    with pytest.raises(NameError):  # no setting's fault: the traceback is wanted
        run("run", "small", "--dry")


def test_a_setting_of_the_environment(folder, capsys, monkeypatch):
    for value in ("0", "-1", "two", "²", "1e9", "99999999"):
        monkeypatch.setenv("SIMS_HOST_DEVICES", value)
        line = refused(capsys, "run", "small", "--dry")
        assert "SIMS_HOST_DEVICES: got" in line
        assert "allowed: a whole number, 1 to 9999" in line


def test_memory_that_runs_out_is_one_line(folder, capsys, monkeypatch):
    def full(options):
        raise MemoryError("Unable to allocate 8 EiB\nfor an array")

    monkeypatch.setattr("sims.cli.listing.experiments", full)
    assert "memory: got 'Unable to allocate 8 EiB for an array'" in refused(capsys, "experiments")


def test_a_broken_file_stops_the_workflow_in_one_line(folder):
    """The Snakefile asks `choose`; what it raises there, it prints."""
    from sims.study.code import choose

    file = folder / "experiments/small/experiment.yaml"
    for change, words in (
        ({"fidelities": [1]}, r"fidelities: got \[1\]; allowed: a mapping"),
        ({"fidelities": {"smoke": 3}}, "fidelities: got 3; allowed: a mapping"),
        ({"claims": [3]}, r"claims: got \[3\]; allowed: a list of mappings"),
    ):
        file.write_text(yaml.safe_dump(EXPERIMENT | change))
        with pytest.raises(ValueError, match=words):
            choose({"fidelity": "smoke"})
    for config, words in (
        ({"fidelty": "smoke"}, "did you mean fidelity"),
        ({"fidelity": "smok"}, "did you mean smoke"),
        ({"experiment": "smal"}, "did you mean small"),
    ):
        with pytest.raises(ValueError, match=words):
            choose(config)
