"""Papers whose claims are tested: one YAML file each, ``papers/<arXiv id>.yaml``. No JAX.

A paper's file lists its claims, and the family of questions that say always, which is adjusted for
multiple tests. A question's ``claim`` is an id from there.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from sims.base.documents import read_yaml
from sims.base.errors import InputError, one_of
from sims.base.places import place
from sims.base.validation import Strict, parse

PAPERS = "papers"
"""Folder of the papers' files; see :mod:`sims.base.places`."""
MAIN = "2605.20271"
"""arXiv id of an experiment's paper unless it names another."""


class Claim(Strict):
    """A claim of ours about a paper: an implication of its reconstruction, or an assumption."""

    id: str = Field(min_length=1)
    """Id used by experiments and ledger."""
    label: str = ""
    """Short name for lists."""
    statement: str = Field(min_length=1)
    """The claim in a sentence."""
    algebra: str = ""
    """Test that proves it, if algebra decides it."""
    counterexample: str = ""
    """Case in which it fails, if algebra refutes it."""
    formula: str = ""
    """Formula of the claim, in TeX."""
    symbols: str = ""
    """Meaning of the formula's symbols."""
    derivation: str = ""
    """Section that derives it, relative to docs/."""


class PaperClaim(Claim):
    """A claim of a paper, in our words."""

    source: Literal["abstract", "press summary", "full text"]
    """Source of the claim."""
    reconstruction: str = Field(min_length=1)
    """Our reading: the parts of its precise form that the source leaves open."""
    fairness: str = ""
    """Reason why this is the strongest fair reading."""
    failure: str = ""
    """Result that would count as a failure."""
    headline: bool = False
    """Show this claim in the README; at most one claim per paper."""


class Paper(Strict):
    """A paper and its claims."""

    arxiv: str = Field(pattern=r"^\d{4}\.\d{4,5}$")
    """The arXiv id, which is the file's name."""
    title: str = Field(min_length=1)
    authors: str = Field(min_length=1)
    year: int = Field(ge=1991)
    read: str = Field(min_length=1)
    """Available parts of the paper."""
    full_text: bool = False
    """Whether the full text was read; else the abstract, and "false" is false under our reading."""
    claims: list[PaperClaim] = Field(min_length=1)
    ours: list[Claim] = []
    """Our claims about the paper."""
    family: list[str] = []
    """Ids of the questions that say always, whose p-values are adjusted together."""

    @property
    def every(self) -> list[Claim]:
        """Its claims, and ours about it."""
        return [*self.claims, *self.ours]


def papers() -> dict[str, Paper]:
    """Papers with a file by arXiv id, the main one first.

    Raises:
        InputError: as :func:`paper_of`.
    """
    ids = [path.stem for path in place(PAPERS).glob("*.yaml")]
    return {id: paper_of(id) for id in sorted(ids, key=lambda id: (id != MAIN, id))}


def paper_of(id: str) -> Paper:
    """Paper with the given arXiv id.

    Raises:
        InputError: the file is missing, does not fit the schema, belongs to another paper, or lists
            a claim twice.
    """
    path = place(PAPERS) / f"{id}.yaml"
    if not path.is_file():
        allowed = one_of(sorted(file.stem for file in path.parent.glob("*.yaml")), id)
        raise InputError("paper", id, allowed or f"a paper with a file {path}")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, edited: int) -> Paper:
    """Paper in a file that was edited at that time, so that a run reads it once."""
    paper = parse(Paper, read_yaml(path), str(path))
    if paper.arxiv != path.stem:
        raise InputError(f"{path}: arxiv", paper.arxiv, f"{path.stem}, as the file is named")
    ids = Counter(claim.id for claim in paper.every)
    for id in (id for id, count in ids.items() if count > 1):
        raise InputError(f"{path}: claims, ours", id, "each id once")
    return paper
