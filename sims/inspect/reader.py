"""Tensors and settings of a model on disk, read by safetensors and JSON alone.

Nothing is unpickled. Tensors are read when they are asked for, so that a large model passes through
memory a layer at a time.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from sims.errors import InputError, one_of
from sims.files import regular_file

FLOATS: dict[str, Any] = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16}
"""Stored types that are read, as NumPy's; all become float64."""
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads")
"""Keys of config.json that may hold the number of heads."""
INDEX = ".index.json"


class Model:
    """The tensors of a model, by name, and its settings.

    Attributes:
        name: of the file and its folder, for reports.
        config: of config.json; empty without one.
        shapes: of every tensor, by name.
    """

    def __init__(self, path: str | Path, config: str | Path | None = None) -> None:
        """Open a ``.safetensors`` file, a ``.safetensors.index.json``, or a folder with either.

        Raises:
            InputError: the path holds no model in this format, or its config is no JSON object.
        """
        path = _model_file(Path(path))
        self.name = f"{path.absolute().parent.name}/{path.name}"
        self._stored: dict[str, tuple[Path, str]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for part in _parts(path):
            for name, (kind, shape) in _entries(part).items():
                self._stored[name] = part, kind
                self.shapes[name] = shape
        beside = path.parent / "config.json"
        settings = config if config is not None else beside if beside.is_file() else None
        self.config = {} if settings is None else _with_defaults(_object(Path(settings)))

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """A tensor as float64.

        Raises:
            InputError: it is missing, has another shape, is quantised, or holds NaN or infinity.
        """
        if name not in self.shapes:
            raise InputError(f"{self.name}: {name}", "no tensor", one_of(self.shapes, name))
        if shape is not None and self.shapes[name] != shape:
            raise InputError(f"{self.name}: {name}", self.shapes[name], f"shape {shape}")
        path, kind = self._stored[name]
        if kind not in FLOATS:
            allowed = f"{', '.join(FLOATS)} (quantised models: dequantise first)"
            raise InputError(f"{self.name}: {name}", kind, allowed)
        with np.errstate(invalid="ignore"):  # NaN is refused below
            values = np.asarray(_tensor(path, name), np.float64)
        if not np.isfinite(values).all():
            raise InputError(f"{self.name}: {name}", "NaN or infinity", "finite numbers")
        return values

    def read_or_none(self, name: str) -> np.ndarray | None:
        """A tensor as float64, or None where the model has none of this name."""
        return self.read(name) if name in self.shapes else None

    def heads(self, requested: int | None = None) -> int:
        """The number of query heads, as given or of config.json; no tensor says it.

        Raises:
            InputError: neither says it, or they disagree.
        """
        documented = count(self.config, HEADS)
        decoder = self.config.get("decoder_attention_heads", documented)
        if requested is None and documented is not None and decoder != documented:
            got = f"{documented} and {decoder} heads"
            raise InputError("config", got, "one number, by --heads")
        if requested is not None and documented is not None and requested != documented:
            raise InputError(
                "--heads", requested, f"{documented}, as config.json says, or no config"
            )
        heads = requested if requested is not None else documented
        if heads is None:
            allowed = f"config.json with {' or '.join(HEADS)}, or --heads N: no tensor says it"
            raise InputError("number of heads", None, allowed)
        if heads < 1:
            raise InputError("number of heads", heads, "an integer >= 1")
        return heads


def count(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """The first of these keys' integers; None without one.

    A config of several models (``text_config``, ``vision_config``) counts if only one has the key.

    Raises:
        InputError: a value is no integer.
    """
    parts: list[Mapping[str, Any]] = [
        value for key, value in config.items() if isinstance(value, dict) and "config" in key
    ]
    for scope in ([config], parts):
        documented = [
            (key, part[key]) for part in scope for key in keys if part.get(key) is not None
        ]
        if len({repr(value) for _, value in documented}) > 1:
            raise InputError(
                "config", documented, "one number; give a config of the attention alone"
            )
        for key, value in documented:
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"config.{key}", value, "an integer")
            return value
    return None


def _with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """A config with the defaults of its class in transformers, where that is installed."""
    try:
        from transformers import CONFIG_MAPPING  # type: ignore[import-not-found]

        defaults = CONFIG_MAPPING[config.get("model_type")].from_dict(config).to_dict()
    except Exception:  # not installed, no such class, or a config that the class refuses
        return config
    return defaults | config


def _model_file(path: Path) -> Path:
    """The file that stands for a model: the path, or a folder's single or sharded one."""
    if path.is_dir():
        for name in ("model.safetensors", f"model.safetensors{INDEX}"):
            if (path / name).is_file():
                return path / name
        raise InputError(str(path), "a folder", f"one with model.safetensors or its {INDEX}")
    if not path.is_file():
        raise InputError(str(path), "no file", "a .safetensors file, its index, or a folder")
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl"):
        allowed = "a .safetensors file: pickles run code and are not opened"
        raise InputError(str(path), path.suffix, allowed)
    return path


def _parts(path: Path) -> list[Path]:
    """The files of a model: those that its index names, or the file itself."""
    if not path.name.endswith(INDEX):
        return [path]
    files = _object(path).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise InputError(f"{path}: weight_map", type(files).__name__, "tensor names to file names")
    names = sorted(set(map(str, files.values())))
    for name in names:
        if Path(name).name != name:
            raise InputError(f"{path}: weight_map", name, "files of the same folder")
    return [path.parent / name for name in names]


def _opened(path: Path) -> Any:
    try:
        return safe_open(regular_file(str(path), path), framework="np")
    except SafetensorError as error:
        message = str(error).removeprefix("Error while deserializing header: ")
        raise InputError(str(path), message, "a whole .safetensors file") from None
    except OSError as error:
        raise InputError(str(path), str(error), "a .safetensors file that can be read") from None


def _entries(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Stored type and shape of the tensors of a file, by name."""
    try:
        with _opened(path) as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  no mapping
            return {k: (s.get_dtype(), tuple(s.get_shape())) for k, s in slices.items()}
    except MemoryError:  # the address space is limited: safetensors maps files as they are
        return {k: (e["dtype"], tuple(e["shape"])) for k, e in _header(path)[1].items()}


def _tensor(path: Path, name: str) -> np.ndarray:
    """A tensor of a file, opened anew so that its pages do not stay in memory."""
    try:
        with _opened(path) as file:
            return np.asarray(file.get_tensor(name))
    except MemoryError:
        start, entries = _header(path)
        kind, shape, (first, last) = (entries[name][k] for k in ("dtype", "shape", "data_offsets"))
        values = np.fromfile(path, np.uint8, last - first, offset=start + first)
        if values.nbytes != last - first:
            raise InputError(str(path), "truncated", "a whole .safetensors file") from None
        return values.view(FLOATS[kind]).reshape(shape)


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Where the data of a file begin, and what its header says of tensors."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return 8 + size, header


def _object(path: Path) -> dict[str, Any]:
    regular_file(str(path), path)
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), str(error)[:60], "a JSON file") from None
    if not isinstance(data, dict):
        raise InputError(str(path), type(data).__name__, "a JSON object")
    return data
