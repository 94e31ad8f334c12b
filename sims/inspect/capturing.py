"""Inputs of the attention modules of a torch model, and what its loss needs of heads, by hooks."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.inspect.layouts import Layout, modules, numbered
from sims.inspect.report import LOSS, MASK


def capture(model: Any, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Inputs (sequence, token, d) of each attention module on a batch, for ``activations``.

    Names are numbers of layers, or those of modules if an encoder and a decoder share numbers. The
    mask ``attention_mask`` is among them if it is among the inputs. The model runs once, without
    gradients; its hooks are removed again.

    Args:
        model: a ``torch.nn.Module`` in evaluation mode, with modules of a known layout.
        inputs: keyword arguments of the model: tensors on its device.

    Raises:
        InputError: the model is in training mode, has no known attention, or does not call it with
            tokens.
    """
    import torch

    names = _modules(model)
    caught: dict[str, list[np.ndarray]] = {name: [] for name in names}
    with ExitStack() as hooks, torch.no_grad():
        for name, calls in caught.items():
            module = model.get_submodule(name.strip("."))
            hook = module.register_forward_pre_hook(partial(_keep, calls), with_kwargs=True)
            hooks.callback(hook.remove)
        model(**inputs)
    arrays = {MASK: inputs[MASK].cpu().numpy()} if MASK in inputs else {}
    for name, number in numbered(names).items():
        label = name if number is None else str(number)
        for time, x in enumerate(caught[name]):
            shared = str(time) if len(names) == 1 else f"{name}#{time}"
            arrays[shared if len(caught[name]) > 1 else label] = x
    return arrays


def _keep(calls: list[np.ndarray], module: Any, given: tuple[Any, ...], named: Any) -> None:
    """Hook that adds the first argument of a module, (sequence, token, d), to its calls."""
    x = [*given, *named.values()][0].float().cpu().numpy()
    calls.append(x if getattr(module, "batch_first", True) else x.swapaxes(0, 1))


def removal_losses(model: Any, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Rises (H, sequence) of the loss per token with one head's output at its mean, by layer.

    Names are those of :func:`capture` followed by :data:`~sims.inspect.report.LOSS`, so that both
    fit into one file for ``activations``. The mean is over the tokens of the batch, without
    padding. The model runs once for each head and sequence, without gradients.

    Args:
        model: a ``torch.nn.Module`` of transformers with a language head, in evaluation mode; its
            result has a ``loss`` (nats per token).
        inputs: keyword arguments of the model with ``labels``: tensors on its device.

    Raises:
        InputError: the model is in training mode, there are no labels, or a layer's heads do not
            reach its output by a module.
    """
    import torch

    if "labels" not in inputs:
        raise InputError("inputs", ", ".join(inputs), "labels, too: the loss is of them")
    names = _modules(model)
    batch = range(len(inputs["labels"]))
    sequences = [{name: x[row : row + 1] for name, x in inputs.items()} for row in batch]

    def losses() -> np.ndarray:
        return np.array([model(**sequence).loss.item() for sequence in sequences])

    rises = {}
    with torch.no_grad():
        plain = losses()
        for name, number in numbered(names).items():
            output = _output(model, name, names[name])
            caught: list[np.ndarray] = []
            with output.register_forward_pre_hook(partial(_keep, caught), with_kwargs=True):
                model(**inputs)
            if not caught:
                raise InputError(f"{type(model).__name__}: {name}", "fused", "an output module")
            known = slice(None)
            if MASK in inputs:
                known = inputs[MASK].bool().cpu().numpy()
            mean = caught[0][known].reshape(-1, caught[0].shape[-1]).mean(0)
            rows = []
            for head in np.split(np.arange(len(mean)), model.config.num_attention_heads):
                with output.register_forward_pre_hook(partial(_replace, head, mean)):
                    rows.append(losses() - plain)
            label = name if number is None else str(number)
            rises[label + LOSS] = np.array(rows)
    return rises


def _modules(model: Any) -> dict[str, Layout]:
    """Layouts of the attention modules of a torch model in evaluation mode."""
    if model.training:
        raise InputError("model", "in training mode", "model.eval() first: dropout is random")
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    opened: Any = SimpleNamespace(name=type(model).__name__, config={}, shapes=shapes)
    return modules(opened)


def _output(model: Any, name: str, layout: Layout) -> Any:
    """Module whose inputs are the outputs of a layer's heads, side by side."""
    places = dict(model.named_modules())
    above = name.rpartition(".")[0]
    for ending in layout[2]:
        place = f"{above}.{ending[3:]}" if ending.startswith("../") else f"{name}.{ending}"
        if place in places:
            return places[place]
    raise InputError(f"{type(model).__name__}: {name}", "no output module", " or ".join(layout[2]))


def _replace(
    head: np.ndarray, mean: np.ndarray, module: Any, given: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Hook that puts the mean in the place of a head's outputs."""
    outputs = given[0].clone()
    outputs[..., head] = outputs.new_tensor(mean[head])
    return outputs, *given[1:]
