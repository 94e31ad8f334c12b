"""What an experiment file can get wrong beyond its schema; it changes no number. No JAX."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sims.errors import InputError
from sims.judgement import Rule
from sims.study.schema import ExperimentSpec


def check(spec: ExperimentSpec) -> None:
    """Look at what the schema alone cannot say of an experiment, at all of its fidelities.

    Raises:
        InputError: a fidelity's changes do not fit, a field of simulation or theory changes nothing
            at any fidelity, or a claim lacks a number that its test needs, or has one that the
            test does not use.
    """
    for section in ("simulation", "theory"):
        every = [getattr(spec, f"{section}_at")(name) for name in spec.fidelities]
        for field, need in every[0].ignored().items() if every else ():
            if all(field in settings.ignored() for settings in every):
                given = getattr(every[0], field)
                raise InputError(f"{section}.{field}", given, f"nothing without {need}")
    for name in spec.fidelities:
        spec.settings_at(name)
    for claim in spec.claims:
        try:
            Rule.of(claim)
        except InputError as error:
            where = f"claims, {claim.id} ({claim.regime}), {error.field}"
            raise InputError(where, error.value, error.allowed) from None


@contextmanager
def own_code(folder: Path) -> Iterator[None]:
    """Errors that an experiment's own code makes of its settings are one line, with their place.

    Its own are those whose innermost frame, of all that are the project's, is in its folder. From
    Python, the whole traceback stands above the line.

    Raises:
        InputError: a key is not there, or a value is of another kind than the code needs.
    """
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        own, package = folder.resolve(), Path(__file__).resolve().parents[1]
        frames = traceback.extract_tb(error.__traceback__)
        known = [(Path(f.filename).resolve(), f.lineno) for f in frames]
        path, line = [k for k in known if k[0].is_relative_to(own) or package in k[0].parents][-1]
        if not path.is_relative_to(own):
            raise
        allowed = "settings, in experiment.yaml, that this code can use"
        got = f"{type(error).__name__}: {error}"
        raise InputError(f"{folder / path.name}, line {line}", got, allowed) from error
