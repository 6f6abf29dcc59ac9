"""From configs to candidates: specialised, compiled side by side, read by libkernelgen."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from .. import errors
from . import assembly, compiling, limits, source, ttir
from .config_judges import Candidate

# What was compiled in this process, by source: other shapes of the same kind ask for the same code.
_compiled: OrderedDict[str, Any] = OrderedDict()
_MOST_COMPILED = 1024
# Weights of the model for kernels without products: docs/model.md, "memory-bound".
_FAMILY_WITHOUT_PRODUCTS = "rowwise"


def words_of(config: Any) -> str:
    """A config in one line, without what is not set."""
    return " ".join(f"{name}={value}" for name, value in config.all_kwargs().items() if name != "num_ctas" or value != 1)


def bytes_of(value: Any) -> Optional[float]:
    """Of a tensor; None: it is none."""
    try:
        return float(int(value.numel()) * int(value.element_size()))
    except Exception:  # no tensor, or one of symbolic sizes
        pass
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    size = getattr(dtype, "itemsize", None)
    try:
        return float(math.prod(int(extent) for extent in shape) * size) if shape is not None and size else None
    except Exception:
        return None


def _set_descriptors(config: Any, named: Mapping[str, Any]) -> None:
    """Hooks give tensor descriptors the block shape of a config, and that is part of their type."""
    hook = getattr(config, "pre_hook", None)
    if hook and any(hasattr(value, "block_shape") for value in named.values()):
        hook({**named, **config.all_kwargs()})


def _identity(made: source.Source) -> str:
    parts = [made.as_ast().hash(), made.options.hash(), str(made.target)]
    override = getattr(made.options, "ir_override", None)
    if override:
        with open(override, "rb") as file:
            parts.append(hashlib.sha256(file.read()).hexdigest())
    return "-".join(parts)


class Analysis:
    """The candidates of one call of one kernel."""

    def __init__(self, kernel: Any, configs: Sequence[Any], named: Mapping[str, Any], target: Any, *,
                 device: Optional[str] = None, shared_bytes: Optional[int] = None) -> None:
        self.kernel, self.named, self.target, self.device = kernel, dict(named), target, device
        self.limits = limits.Limits.of(target, shared_bytes)
        self.candidates = [Candidate(index, config, words_of(config)) for index, config in enumerate(configs)]
        self._arguments: dict[int, dict[str, Any]] = {}
        self._keys: dict[int, str] = {}

    def compile(self, deadline: float = compiling.DEADLINE, count: Optional[int] = None) -> Iterator[Candidate]:
        """Each candidate, as soon as its facts are there or a reason why not."""
        return (one for one in self.stream(self.candidates, deadline, count) if one is not None)

    def stream(self, candidates: Sequence[Candidate], deadline: float, count: Optional[int],
               waits: Callable[[], bool] = lambda: True) -> Iterator[Optional[Candidate]]:
        """The same of some candidates in the order in which they begin; None as from `compiling.compile_all`."""
        jobs, followers = [], {}
        for one in candidates:
            try:
                job = self._prepare(one)
            except Exception as error:  # of the config, the heuristics, or Triton's own checks
                one.drop(f"{type(error).__name__}: {error}", reserve=False)
                yield one
                continue
            key = self._keys[one.index]
            if key in _compiled:
                self._absorb(one, _compiled[key])
                yield one
            elif key in followers:
                followers[key].append(one)
            else:
                followers[key] = [one]
                jobs.append(job)
        for done in compiling.compile_all(jobs, self.limits, deadline=deadline, count=count, waits=waits):
            if done is None:
                yield None
                continue
            key, result = done
            _compiled[key] = result
            while len(_compiled) > _MOST_COMPILED:
                _compiled.popitem(last=False)
            for one in followers[key]:
                self._absorb(one, result)
                yield one

    def compiled(self, one: Candidate) -> Any:
        return _compiled.get(self._keys.get(one.index, ""))

    def _prepare(self, one: Candidate) -> tuple[str, source.Source, Mapping[str, Any]]:
        _set_descriptors(one.config, self.named)
        made = source.specialise(self.kernel, self.named, one.config, self.target)
        arguments = source.arguments_of(self.kernel, self.named, one.config)
        self._arguments[one.index] = arguments
        one.grid = source.grid_of(self.named, arguments)
        one.stages = made.options.num_stages
        key = self._keys[one.index] = _identity(made)
        return key, made, {name: value for name, value in arguments.items() if isinstance(value, int)}

    def _absorb(self, one: Candidate, result: Any) -> None:
        if isinstance(result, compiling.Failure):
            one.drop(result.reason, reserve=False)
            return
        one.work = ttir.read(result.ttir, self._arguments[one.index])
        one.code = hashlib.sha256(result.binary or result.ptx).hexdigest()
        if self.target.backend != "cuda":
            return
        launch = self._launch(one, result)
        try:
            one.ptx = assembly.report(result.ptx, result.name, launch)
            one.cubin = assembly.report(result.binary, result.name, launch)
        except errors.Error as error:  # of a newer instruction set than the library knows
            one.ptx, one.cubin, one.unread = {}, {}, str(error)

    def _launch(self, one: Candidate, result: compiling.Compiled) -> assembly.Launch:
        arguments, work = self._arguments[one.index], one.work
        read = sum(bytes_of(arguments.get(name)) or 0.0 for name in work.reads)
        written = sum(bytes_of(arguments.get(name)) or 0.0 for name in work.writes)
        one.compulsory_bytes = read + written
        blocks = math.prod(one.grid) if one.grid else 0
        flops = work.flops * blocks if work.exact else 0.0
        return assembly.Launch(one.grid or (0, 0, 0), result.shared_bytes, read, written, flops, self.device,
                               None if work.dots else _FAMILY_WITHOUT_PRODUCTS)


def device_name(target: Any) -> Optional[str]:
    """The current GPU's name, if it is the one that is compiled for; the model knows some by name."""
    try:
        import torch
        if not torch.cuda.is_initialized():
            return None
        major, minor = torch.cuda.get_device_capability()
        return torch.cuda.get_device_name() if 10 * major + minor == target.arch else None
    except Exception:
        return None
