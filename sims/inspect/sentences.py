"""A report in words: what to do, and a summary."""

import re
from collections.abc import Sequence

import numpy as np
import xarray as xr

NEEDED = "Use --activations: weights alone do not say which heads can be removed."
SHARES = (
    "an average keeps {:.0f} % of the variance of patterns and {:.0f} % of that of outputs "
    "({:.0f} % if uncorrelated)"
)


def advice(data: xr.Dataset) -> str:
    """Heads that can be removed from one layer and the cost, or what is needed to find them."""
    if "redundant_heads" not in data:
        return "Layers of one head." if "contribution_kept" in data else NEEDED
    row = data.isel(layer=advised(data))
    layer = listed([row.label.item()])
    count = int(row.redundant_heads)
    shown = max(count, 1)
    heads = ", ".join(f"{head:.0f}" for head in row.removal_order.values[:shown])
    name = f"head{'s' * (count > 1)} {heads}"
    errors = 100 * row.removal_error.values, 100 * row.removal_error_mcse.values
    cost = "{:.2g} ± {:.1g} %".format(*(error[shown - 1] for error in errors))
    if count > 0:
        text = f"{layer}: {name} can be removed at +{cost} output error"
    else:
        text = f"no head can be removed within {100 * data.attrs['tolerance']:.3g} % output error"
        if heads != "nan":
            text += f": the cheapest, {name} of {layer}, costs {cost}"
    if np.isfinite(rise := float(row.get("cheapest_loss", np.nan))):
        loss = f"{rise:+.2g} ± {row.cheapest_loss_mcse:.1g} nats a token"
        head = f"head {row.cheapest_head:.0f} of {layer}"
        text += f"; with {head} at its mean the loss changes by {loss}"
    kept = 100 * row.noise_kept, 100 * row.contribution_kept, 100 / row.heads
    return capitalised(f"{text}; {SHARES.format(*map(float, kept))}.")


def advised(data: xr.Dataset) -> int:
    """Place of the layer with most redundant heads, of several that with the cheapest removal.

    Without activations it is the layer whose OV maps align most.
    """
    if "redundant_heads" not in data:
        return int(np.argmax((data.value_kept * data.heads).fillna(-1).values))
    cost = data.removal_error.fillna(np.inf).values[:, 0]
    return int(np.lexsort((cost, -data.redundant_heads.fillna(-1).values))[0])


def sentence(data: xr.Dataset) -> str:
    """Summary of the report: redundant heads by layer, or the layer whose OV maps align most."""
    if "redundant_heads" not in data:
        row = data.isel(layer=advised(data))
        kept = f"{100 * row.value_kept:.0f} % ({100 / row.heads:.0f} % if uncorrelated)"
        return f"OV maps align most in {listed([row.label.item()])}; their average keeps {kept}."
    counts = data.redundant_heads.values
    seen = np.isfinite(counts)
    total = f"{counts[seen].sum():.0f} of {data.heads.values[seen].sum():.0f} heads"
    text = f"Redundant at {100 * data.attrs['tolerance']:.3g} % output error: {total}"
    if (counts > 0).any():
        text += f", in {listed(data.label.values[counts > 0])}"
    if not seen.all():
        text += f"; {listed(data.label.values[~seen])} without activations"
    return f"{text}."


def capitalised(text: str) -> str:
    """Text with a capital letter, unless it begins with the name of a module."""
    return re.sub("^[a-z]+(?= )", lambda word: word[0].capitalize(), text)


def listed(names: Sequence[str]) -> str:
    """``layer 3``, ``layers 3 and 7``, ``layers 0–5``, or names of modules."""
    if not all(name.isdigit() for name in names):
        return ", ".join(names)
    numbers = np.array(names, int)
    words: list[str] = []
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        words += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"layer{'s' * (len(names) > 1)} {joined}"
