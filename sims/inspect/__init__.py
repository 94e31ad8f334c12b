"""Heads of a trained model, from its file and, optionally, inputs of its attention layers.

============================= ==================================================================
:func:`inspect`               a report: one dataset along ``layer``, and a sentence
:func:`sentence`              summary of the report
:func:`scalars`               its numbers by layer
:func:`capture`               inputs of the attention layers of a torch model, in one call
:func:`removal_losses`        what its loss per token needs of each head
:func:`layers`                the heads themselves, layer by layer, of an open :class:`Model`
============================= ==================================================================

safetensors and gguf read models without torch; nothing is unpickled.
"""

from sims.inspect.capturing import capture, removal_losses
from sims.inspect.layer import Layer
from sims.inspect.layouts import layers
from sims.inspect.reader import Model
from sims.inspect.report import as_json, exceeded, inspect, scalars
from sims.inspect.sentences import sentence

__all__ = [
    "Layer",
    "Model",
    "as_json",
    "capture",
    "exceeded",
    "inspect",
    "layers",
    "removal_losses",
    "scalars",
    "sentence",
]
