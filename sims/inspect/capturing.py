"""Inputs of the attention modules of a torch model, caught by hooks."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.inspect.layouts import modules, numbered
from sims.inspect.report import MASK


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

    if model.training:
        raise InputError("model", "in training mode", "model.eval() first: dropout is random")
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    opened: Any = SimpleNamespace(name=type(model).__name__, config={}, shapes=shapes)
    names = modules(opened)
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
