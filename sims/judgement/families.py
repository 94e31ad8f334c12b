"""Families of questions that say always, whose p-values are adjusted together. No JAX."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sims.judgement.answers import Answer, verdict


def adjusted(answers: Sequence[Answer], families: Iterable[Sequence[str]]) -> list[Answer]:
    """Answers of a ledger, with "always" adjusted by Holm's method over each family of questions.

    Args:
        answers: available answers.
        families: ids of the questions of every family, answered or not.
    """
    out = list(answers)
    for ids in families:
        family = [i for i, item in enumerate(out) if item.id in ids]
        m = len(ids)
        p_adjusted = 0.0
        for rank, i in enumerate(sorted(family, key=lambda i: out[i].p_value)):
            p_adjusted = max(p_adjusted, min(1.0, (m - rank) * out[i].p_value))
            out[i] = replace(out[i], adjusted=p_adjusted, family=m, always=verdict(p_adjusted))
            if out[i].always != "no":
                out[i] = replace(out[i], counterexample=None, worst={}, problem=None)
    return out
