"""Checkpoints of torch as arrays, without torch: a reader that runs nothing that they name."""

import pickle
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np

STORED = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): lambda *arguments: arguments[:4],
    **{("torch", name): name for name in STORED},
}
"""All that a checkpoint may name, but for settings of training; what else it names raises."""


class Checkpoint(pickle.Unpickler):
    """Reads torch's old format: tensors as (storage, offset, shape, strides), nothing is run."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.kinds: dict[str, str] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module in ("argparse", "fairseq.meters"):
            return SimpleNamespace  # settings of training, which nothing reads
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return ALLOWED[module, name]

    def persistent_load(self, pid: tuple[Any, ...]) -> tuple[Any, ...]:
        self.kinds[pid[2]] = pid[1]
        return pid


def tensors(path: Path) -> dict[str, np.ndarray]:
    """The floating-point tensors of a checkpoint, by name."""
    with path.open("rb") as file:
        for _ in range(3):
            Checkpoint(file).load()
        reader = Checkpoint(file)
        content = reader.load()
        storages = {}
        for key in Checkpoint(file).load():
            count = int.from_bytes(file.read(8), "little")
            kind = np.dtype(STORED[reader.kinds[key]])
            storages[key] = np.frombuffer(file.read(count * kind.itemsize), kind)
    named = {}
    for name, (stored, offset, shape, strides) in content.get("model", content).items():
        values = storages[stored[2]][offset:]
        steps = [values.itemsize * step for step in strides]
        named[name] = np.ascontiguousarray(np.lib.stride_tricks.as_strided(values, shape, steps))
    return {name: array for name, array in named.items() if array.dtype.kind == "f"}
