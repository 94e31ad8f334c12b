"""The experiment file: its schema.

One source for everything: the pydantic models below give the defaults, the validation and the
JSON schema (``sims schema``).
"""

from math import inf
from typing import Any, Literal

from pydantic import Field, model_validator

from sims.base.errors import InputError, one_of
from sims.base.validation import Strict, parse
from sims.study.papers import MAIN

Kind = Literal["share", "gap", "mean", "outcome"]
"""What a question asks, as :mod:`sims.judgement.effects` has it, on which no number depends."""


class SimulationSpec(Strict):
    """Size and precision of a simulation."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    replicates_per_batch: int = Field(default=32, ge=2)
    batches: int = Field(default=16, ge=2)
    """Minimum number of batches."""
    max_batches: int | None = Field(default=None, ge=2)
    """Maximum number; default: batches."""
    rel_mcse: float | None = Field(default=None, gt=0)
    """Target ratio of the MCSE to its term, for all terms."""
    negligible: float = Field(default=1e-3, ge=0)
    """Share of the MSE below which a term is exempt from rel_mcse."""
    precision: Literal["float32", "float64"] = "float32"
    control_variate: bool = False
    """Reduce the spread of the signal covariance, without bias or theory; estimates may not be
    positive semidefinite (n >= 2)."""
    keep_queries: bool = False
    """Keep estimates at every query as well as their average."""

    @model_validator(mode="after")
    def _limit_covers_batches(self) -> "SimulationSpec":
        """The most batches are no fewer than the least."""
        if self.max_batches is not None and self.max_batches < self.batches:
            raise InputError("max_batches", self.max_batches, f"at least batches = {self.batches}")
        if self.max_batches is not None and self.rel_mcse is None:
            raise InputError("max_batches", self.max_batches, "only with rel_mcse")
        return self

    @property
    def sampling(self) -> dict[str, Any]:
        """How much is sampled, as arguments of :func:`sims.montecarlo.run`."""
        names = {"replicates_per_batch", "batches", "rel_mcse", "negligible"}
        limit = None if self.rel_mcse is None else self.max_batches or self.batches
        return {**self.model_dump(include=names), "max_batches": limit}

    @property
    def estimator(self) -> dict[str, Any]:
        """Settings of a simulation, as arguments of :func:`sims.simulation.estimate`."""
        names = {"precision", "control_variate", "keep_queries"}
        return self.model_dump(include=names)


class TheorySpec(Strict):
    """Order and accuracy of theory."""

    order: Literal["first", "exact", "auto", "none"] = "first"
    """First order in 1/n, or exact at every n; in `sims decompose` and `sims sweep` also auto
    (exact if first order is out of its range) and none (for weight rules that theory does not
    cover)."""
    rtol: float | None = Field(default=None, ge=1e-9, le=0.1)
    """Accuracy of exact theory; default 1e-4, or 1e-3 if the design is not Gaussian."""

    @model_validator(mode="after")
    def _accuracy_is_of_exact_theory(self) -> "TheorySpec":
        """The accuracy of another order has no meaning."""
        if self.rtol is not None and self.order not in ("exact", "auto"):
            raise InputError("rtol", self.rtol, "only with order: exact or auto")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Order and accuracy as arguments of :func:`sims.theory.predict`."""
        return self.model_dump(exclude={"rtol"} if self.order == "first" else None)


class Range(Strict):
    """Bounds on a fact of an effect."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> "Range":
        """A range has a bound, and something between two."""
        low, high = self.at_least, self.at_most
        if (low is None and high is None) or (low is not None and high is not None and low > high):
            raise InputError("range", [low, high], "at_least, at_most or both, in this order")
        return self

    def contains(self, value: Any) -> Any:
        """Truth value of a number, or of each in an array, being in the range."""
        low = -inf if self.at_least is None else self.at_least
        return (low <= value) & (value <= (inf if self.at_most is None else self.at_most))


Conditions = dict[str, float | str | Range]
"""Columns of the law's parameters: the value that each must have, or a range of it."""


class RestrictionSpec(Strict):
    """A subset of the law's problems that a question is about."""

    text: str = Field(min_length=1)
    """Description of these problems."""
    where: Conditions = Field(min_length=1)
    """Conditions on parameters."""


READ: dict[Kind, set[str]] = {
    "share": {"says", "quantity"},
    "gap": {"says", "tolerance"},
    "outcome": {"says", "tolerance", "quantity", "level_holds", "compared"},
    "mean": set(),
}
"""Fields of a question that have a meaning, by what it asks."""


class SpecificationsSpec(Strict):
    """Other choices under which a question could be asked, in all combinations."""

    effects: dict[str, dict[str, str]] = Field(min_length=1)
    """Effects to the choices that each stands for, name to value."""
    problems: dict[str, dict[str, Conditions]] = {}
    """Choices of problems: name to values with conditions."""


class QuestionSpec(Strict):
    """A question about the problems of a law: one number per problem."""

    id: str = Field(pattern=r"^[\w-]+$")
    """Unique id in the experiment."""
    claim: str | None = None
    """Claim id, as `sims claims` lists them; default: id."""
    paper: str = MAIN
    """The arXiv id of the paper that lists it; default: the experiment's."""
    own: str | None = Field(default=None, min_length=1)
    """Your own claim in a sentence, in the place of a paper's: it belongs to no paper and to no
    family of adjusted p-values."""
    question: str = Field(min_length=1)
    """The question, on one line."""
    asks: Kind
    """Share: how often a claim holds; gap: how far simulation is from theory; mean: how large a
    number is on average; outcome: how often a quantity falls."""
    effect: str
    """Name of the study's effect, which must be of that kind."""
    quantity: str | None = Field(default=None, min_length=1)
    """Quantity whose relative change is shown, of an effect that has a size."""
    revision: int = Field(default=1, ge=1)
    """Revision of the effect's code: raise it if its numbers change, which redraws the problems."""
    status: Literal["confirmatory", "exploratory"]
    """Confirmatory: a claim that gets a word; exploratory: an estimate without one."""
    says: Literal["always"] | None = None
    """Always: the claim covers every problem or every step."""
    level_holds: bool = False
    """Level problems count as ones that hold, as for 'never rises by more than 1 %'."""
    built_in: str = ""
    """Why the law builds the answer in, if it does: a few words."""
    validates: bool = False
    """The question tests our formulas, not a paper's claim."""
    restrict: RestrictionSpec | None = None
    """Restriction of the law; default: none."""
    strata: dict[str, Conditions] = {}
    """Subsets of problems with separate answers, by name."""
    tolerance: Literal["methods", "exact", "slope", "order"] | None = None
    """House tolerance of gaps."""
    specifications: SpecificationsSpec | None = None
    """Choices that the answer's word is tested against."""
    compared: list[str] = []
    """What an outcome compares, for readers: the sets of a ladder from the first to the last one,
    or a rival for each pair."""

    @model_validator(mode="before")
    @classmethod
    def _own_claim_has_no_paper(cls, data: object) -> object:
        """A claim of one's own is in no paper."""
        if not isinstance(data, dict) or not data.get("own"):
            return data
        for name in ("claim", "paper"):
            if data.get(name):
                raise InputError(name, data[name], "nothing, next to a claim of your own")
        return {**data, "paper": ""}

    @model_validator(mode="after")
    def _fields_are_those_of_its_kind(self) -> "QuestionSpec":
        """What a question asks says which other fields have a meaning, and which it needs."""
        read = READ[self.asks]
        for name in ("says", "tolerance", "quantity", "level_holds", "compared"):
            if getattr(self, name) and name not in read:
                kinds = " or ".join(kind for kind, names in READ.items() if name in names)
                raise InputError(name, getattr(self, name), f"only where asks is {kinds}")
        confirmatory = self.status == "confirmatory"
        if confirmatory and self.asks == "mean":
            raise InputError("status", self.status, "exploratory: a mean gets no word")
        needed = self.asks == "outcome" or (confirmatory and self.asks == "gap")
        if needed and self.tolerance is None:
            raise InputError("tolerance", None, f"a tolerance, which {self.asks} needs")
        return self


class FidelitySpec(Strict):
    """Changes that a fidelity makes to settings of simulation and experiment."""

    simulation: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)


class ExperimentSpec(Strict):
    """An experiment: questions about the problems that a law draws."""

    title: str
    paper: str = MAIN
    """The arXiv id of the paper whose claims are tested."""
    aim: str
    derivation: str = ""
    """Section of the documentation, relative to docs/."""
    law: dict[str, Any]
    """Law of the problems; `text` describes it, `checkpoints` has a row a trained model: its `file`
    (`make models`) and, if it has one, the `table` that stands for it."""
    questions: list[QuestionSpec] = Field(min_length=1)
    labels: dict[str, str] = {}
    """Names of parameters in tables."""
    presentation: list[str] = []
    """Files of the folder, besides statistic.py and figure.py, that present results and compute
    none: an edit of them runs no simulation again."""
    simulation: SimulationSpec = SimulationSpec()
    fidelities: dict[Literal["smoke", "standard", "paper"], FidelitySpec]
    settings: dict[str, Any] = {}
    """Values for the experiment's code."""

    @model_validator(mode="before")
    @classmethod
    def _questions_have_a_paper(cls, data: object) -> object:
        """A question that names no paper, and is not one's own, is one of the experiment's."""
        if not isinstance(data, dict) or not isinstance(data.get("questions"), list):
            return data
        paper = {"paper": data.get("paper", MAIN)}
        asked = []
        for question in data["questions"]:
            of_paper = isinstance(question, dict) and not question.get("own")
            asked.append(paper | question if of_paper else question)
        return {**data, "questions": asked}

    def fidelity_changes(self, fidelity: str) -> FidelitySpec:
        """The settings of a fidelity."""
        if fidelity not in self.fidelities:
            raise InputError("fidelity", fidelity, one_of(self.fidelities, fidelity))
        return self.fidelities[fidelity]

    def simulation_settings(self, fidelity: str) -> SimulationSpec:
        """Simulation settings with the fidelity's changes."""
        changed = (
            self.simulation.model_dump(exclude_unset=True)
            | self.fidelity_changes(fidelity).simulation
        )
        return parse(SimulationSpec, changed, f"fidelities.{fidelity}.simulation")

    def experiment_settings(self, fidelity: str) -> dict[str, Any]:
        """Settings of the experiment with the fidelity's changes.

        Raises:
            InputError: the fidelity changes a setting that the experiment does not have.
        """
        changes = self.fidelity_changes(fidelity).settings
        for name in changes.keys() - self.settings.keys():
            allowed = one_of(self.settings, name) or "nothing: there are no settings to change"
            raise InputError(f"fidelities.{fidelity}.settings", name, allowed)
        return self.settings | changes
