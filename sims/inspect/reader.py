"""Tensors and settings of a model on disk, read by safetensors and JSON, or by the package gguf.

Nothing is unpickled. Tensors are read on demand, so that a large model passes through memory one
layer at a time.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401  # makes bfloat16 a type of NumPy, which safetensors needs
import numpy as np
from safetensors import SafetensorError, safe_open

from sims.base.errors import InputError, one_of
from sims.base.files import regular_file
from sims.inspect.gguf_file import open_gguf

FLOATS = ("F64", "F32", "F16", "BF16")
"""Supported stored types; all become float64."""
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
"""Keys of config.json that may hold the number of heads."""
SIDES = ("encoder", "decoder")
"""Model types that may have ``encoder_attention_heads`` and ``decoder_attention_heads``."""
INDEX = ".index.json"
GGUF = ".gguf"
WRAPPERS = re.compile(
    r"(?:(?<=\.)|^)(?:module|_orig_mod|_forward_module|_(?:fsdp|checkpoint)_wrapped_module)\."
)
"""Prefixes that training adds to the names of modules."""


class Model:
    """Tensors of a model, by name, and its settings.

    Attributes:
        name: name of the file and its folder, for reports.
        part: part of the model in the file, such as ``2 of 3``; empty for a complete model.
        config: content of config.json; empty without one.
        shapes: shapes of every tensor, by name, without the names of wrappers.
        used: names of the tensors that were read.
    """

    def __init__(self, path: str | Path, config: str | Path | None = None) -> None:
        """Open a ``.safetensors`` or ``.gguf`` file, an ``.index.json``, or a folder with one.

        Raises:
            InputError: the path holds no model in this format, or its config is no JSON object.
        """
        path = _model_file(Path(path))
        self.name = f"{path.absolute().parent.name}/{path.name}"
        part = re.search(r"-0*(\d+)-of-0*(\d+)\.", path.name)
        self.part = f"{part[1]} of {part[2]}" if part and part[2] != "1" else ""
        self._stored: dict[str, _Stored] = {}
        self.used: set[str] = set()
        if path.suffix == GGUF:
            self._open_gguf(path, config)
        else:
            self._open_safetensors(path)
            beside = path.parent / "config.json"
            settings = config if config is not None else beside if beside.is_file() else None
            self.config = {} if settings is None else _settings(_object(Path(settings)))
        self.shapes = {name: stored.shape for name, stored in self._stored.items()}

    def _open_gguf(self, path: Path, config: str | Path | None) -> None:
        if config is not None:
            raise InputError("--config", str(config), f"none: {path.name} has its settings")
        with _whole(regular_file(str(path), path)):
            self.config, tensors = open_gguf(path)
        for name, (shape, read) in tensors.items():
            self._stored[name] = _Stored(path, read, "F32", shape)

    def _open_safetensors(self, path: Path) -> None:
        for file, promised in _parts(path).items():
            with _whole(file):
                entries = dict(_entries(file))
                for missing in promised - entries.keys():
                    got = f"not in {file.name}, as the index says"
                    raise InputError(f"{self.name}: {missing}", got)
                for given, stored in entries.items():
                    name = WRAPPERS.sub("", given)
                    if name in self._stored:
                        raise InputError(f"{self.name}: {given}", "a duplicate tensor", "one")
                    self._stored[name] = stored

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Tensor as float64.

        Raises:
            InputError: the tensor is missing, has another shape, is empty or quantised, or contains
                NaN or infinity.
        """
        if name not in self.shapes:
            raise InputError(f"{self.name}: {name}", "no tensor", one_of(self.shapes, name))
        if 0 in self.shapes[name]:
            allowed = "numbers; ZeRO-3 saves placeholders: gather parameters before saving"
            raise InputError(f"{self.name}: {name}", "an empty tensor", allowed)
        if shape is not None and self.shapes[name] != shape:
            raise InputError(f"{self.name}: {name}", self.shapes[name], f"shape {shape}")
        stored = self._stored[name]
        if stored.kind not in FLOATS:
            allowed = f"{', '.join(FLOATS)} (dequantise quantised models first)"
            raise InputError(f"{self.name}: {name}", stored.kind, allowed)
        quiet = np.errstate(invalid="ignore")  # NaN is refused below
        with _whole(stored.path), quiet:
            values = stored.read().astype(np.float64)
        if not np.isfinite(values).all():
            raise InputError(f"{self.name}: {name}", "NaN or infinity", "finite numbers")
        self.used.add(name)
        return values

    def heads(self, module: str, d: int, requested: int | None = None) -> tuple[int, int | None]:
        """Number of query heads of a module, and d_k if the config gives it.

        The number is given, or comes from config.json: tensors do not determine it.

        Raises:
            InputError: neither gives it, or they disagree.
        """
        documented = count(self.config, _keys_of_sides(module)) or count(self.config, HEADS)
        heads = requested if requested is not None else documented
        if heads is None:
            missing = f"not known: give --heads N, or a config.json with {' or '.join(HEADS)}"
            raise InputError("number of heads", missing)
        if documented not in (None, heads):
            allowed = f"{documented}, as config.json says of {module}, or no config"
            raise InputError("--heads", heads, allowed)
        if heads < 1:
            raise InputError("number of heads", heads, "an integer >= 1")
        if pruned := self.config.get("pruned_heads"):
            raise InputError("config.pruned_heads", pruned, "a model with all of its heads")
        width = count(self.config, ("head_dim", "d_kv"))
        if width is None and documented is not None and d % documented == 0:
            width = d // documented
        return heads, width


def _keys_of_sides(module: str = "") -> list[str]:
    """Keys of config.json that may hold the heads of the encoder's or decoder's modules."""
    sides = re.findall(r"(?:^|\.)(encoder|decoder)\.", module)[:1] or SIDES
    return [f"{side}_attention_heads" for side in sides]


def layer_number(module: str) -> int | None:
    """Number of the layer in a module's name; None if there is not exactly one."""
    numbers = re.findall(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d{1,9})(?!\d)", module)
    return int(numbers[0]) if len(numbers) == 1 else None


def count(config: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """First integer under these keys; None without one.

    Raises:
        InputError: a value is not an integer.
    """
    documented = [(key, config[key]) for key in keys if config.get(key) is not None]
    if len(set(map(repr, dict(documented).values()))) > 1:
        raise InputError("config", documented, "one number; give a config for the attention only")
    for key, value in documented:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"config.{key}", value, "an integer")
        return value
    return None


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """Config, with that of its only model (``text_config``) and defaults of transformers.

    Raises:
        InputError: several models in it have heads.
    """
    keys = {*HEADS, *_keys_of_sides()}
    parts = {k: v for k, v in config.items() if isinstance(v, dict) and keys & v.keys()}
    if parts and not keys & config.keys():
        if len(parts) > 1:
            allowed = "one number of heads: one model's tensors and its config"
            raise InputError("config", sorted(parts), allowed)
        config = config | parts.popitem()[1]
    try:
        from transformers import CONFIG_MAPPING

        defaults = CONFIG_MAPPING[config.get("model_type")].from_dict(config).to_dict()
    except Exception:  # not installed, no such class, or a config that the class refuses
        return config
    return defaults | config


def _model_file(path: Path) -> Path:
    """File of a model: the path, or the single or sharded file in a folder."""
    if path.is_dir():
        for name in ("model.safetensors", f"model.safetensors{INDEX}"):
            if (path / name).is_file():
                return path / name
        others = sorted([*path.glob("*.safetensors"), *path.glob(f"*{GGUF}")])
        if len(others) != 1:
            got = ", ".join(sorted(entry.name for entry in path.iterdir())) or "an empty folder"
            raise InputError(str(path), got, f"one with model.safetensors or its {INDEX}")
        path = others[0]
    if not path.is_file():
        raise InputError(str(path), "file not found: .safetensors, .gguf, an index, or a folder")
    if path.suffix not in ("", ".safetensors", GGUF) and not path.name.endswith(INDEX):
        allowed = ".safetensors or .gguf: pickles can run code, and other formats are not supported"
        raise InputError(str(path), path.suffix, allowed)
    return path


def _parts(path: Path) -> dict[Path, set[str]]:
    """Files of a model: those of its index, with the tensors that it names, or the file itself."""
    if not path.name.endswith(INDEX):
        return {path: set()}
    files = _object(path).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise InputError(f"{path}: weight_map", type(files).__name__, "tensor names to file names")
    parts: dict[Path, set[str]] = {}
    for tensor, name in sorted(files.items(), key=lambda entry: str(entry[1])):
        if not isinstance(name, str) or Path(name).name != name:
            raise InputError(f"{path}: weight_map", name, "files of the same folder")
        parts.setdefault(path.parent / name, set()).add(tensor)
    return parts


class _Stored(NamedTuple):
    """File of a tensor, a function that reads it, its stored type and its shape."""

    path: Path
    read: Callable[[], np.ndarray]
    kind: str
    shape: tuple[int, ...]


def _entries(path: Path) -> Iterator[tuple[str, _Stored]]:
    """Tensors of a file by name, from its header."""
    with safe_open(regular_file(str(path), path), "np") as file:
        for name in file.keys():  # noqa: SIM118  # a file is no mapping
            tensor = file.get_slice(name)
            shape = tuple(tensor.get_shape())
            yield name, _Stored(path, partial(_tensor, path, name), tensor.get_dtype(), shape)


def _tensor(path: Path, name: str) -> np.ndarray:
    with safe_open(path, "np") as file:
        return np.asarray(file.get_tensor(name))


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Context that turns errors of a damaged file into one line."""
    try:
        yield
    except InputError:
        raise
    except (
        SafetensorError,
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        message = str(error).removeprefix("Error while deserializing header: ")
        allowed = "a complete .safetensors or .gguf file: no pickle, ONNX, HDF5 or Git LFS pointer"
        raise InputError(str(path), message, allowed) from None


def _object(path: Path) -> dict[str, Any]:
    regular_file(str(path), path)
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), str(error)[:60], "a JSON file") from None
    if not isinstance(data, dict):
        raise InputError(str(path), type(data).__name__, "a JSON object")
    return data
