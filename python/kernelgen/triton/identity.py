"""What a call is called in records: the kernel's source, the key, types and alignment of arguments, device, versions."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Mapping, Optional, Sequence

from . import analysis, source
from .records import Place, key_of

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def words_of(config: Any) -> str:
    """A config in one line, in records: a file that replaces the compiler's code is named by its contents too."""
    words = analysis.words_of(config)
    override = getattr(config, "ir_override", None)
    if override:
        try:
            with open(override, "rb") as file:
                words += f" ({hashlib.sha256(file.read()).hexdigest()[:12]})"
        except OSError:
            words += " (missing)"
    return words


def asked_of(words: Sequence[str], *how: Any) -> str:
    """Of a list of configs and the way one is chosen: a winner holds for both."""
    return hashlib.sha256(repr((list(words), *map(_text_of, how))).encode()).hexdigest()[:16]


def _text_of(value: Any) -> str:
    inner = getattr(value, "value", value)  # of a constexpr
    return str(getattr(inner, "cache_key", None) or _ADDRESS.sub("", repr(inner)))[:200]


def _described(kernel: Any, named: Mapping[str, Any], config: Any, target: Any, chosen: set[str]) -> tuple[str, str]:
    """Types and alignment of arguments that are not the config's, as the compiler sees them."""
    made = source.specialise(kernel, named, config, target)
    types, alignment = [], []
    for index, parameter in enumerate(made.kernel.params):
        name = parameter.name
        if name in chosen:
            continue
        kind, told = made.signature.get(name), made.attributes.get((index,))
        if kind == "constexpr" and (parameter.is_constexpr or not isinstance(named.get(name), int)):
            types.append(f"{name}={_text_of(made.constants.get((index,)))}")
            continue
        if kind == "constexpr":  # an integer that is 1: the compiler knows
            kind = "i32"
            alignment.append(f"{name}=1")
        elif told:
            alignment.append(name)
        types.append(f"{name}:{kind}")
    return " ".join(types), " ".join(alignment)


def _guessed(named: Mapping[str, Any], chosen: set[str]) -> tuple[str, str]:
    """The same where Triton cannot tell."""
    types = (f"{name}:{getattr(value, 'dtype', type(value).__name__)}" for name, value in named.items()
             if name not in chosen and name not in ("grid", "warmup"))
    return " ".join(types), ""


def chip_of(target: Any) -> str:
    return f"sm_{target.arch}" if target.backend == "cuda" else f"{target.backend}_{target.arch}"


def device_of(target: Any) -> str:
    """The name of the device that is measured on."""
    try:
        device = source.triton().runtime.driver.active.get_device_interface()
        return str(device.get_device_name())
    except Exception:  # a target without its device
        return chip_of(target)


def place_of(kernel: Any, named: Mapping[str, Any], key: Mapping[str, Any], configs: Sequence[Any], target: Any,
             device: Optional[str]) -> Place:
    """`configs`: those that may be chosen; the arguments they set are no part of the place."""
    function, heuristics = source.unwrapped(kernel)
    chosen = {name for config in configs for name in config.all_kwargs()}
    chosen |= {name for layer in heuristics for name in layer.values}
    try:
        types, alignment = _described(kernel, named, configs[0], target, chosen)
    except Exception:  # of a config that does not fit: the search will say so
        types, alignment = _guessed(named, chosen)
    return Place(function.__name__, str(function.cache_key), key_of(key), types, alignment,
                 device or device_of(target), chip_of(target), str(source.triton().__version__))
