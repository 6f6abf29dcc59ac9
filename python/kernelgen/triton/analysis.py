"""From configs to candidates: specialised, compiled side by side, read by libkernelgen."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from .. import errors
from . import assembly, compiling, foresight, limits, source, ttir
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


def _remember(key: Any, result: Any) -> None:
    _compiled[key] = result
    while len(_compiled) > _MOST_COMPILED:
        _compiled.popitem(last=False)


class Analysis:
    """The candidates of one call of one kernel."""

    def __init__(self, kernel: Any, configs: Sequence[Any], named: Mapping[str, Any], target: Any, *,
                 device: Optional[str] = None, shared_bytes: Optional[int] = None) -> None:
        self.kernel, self.named, self.target, self.device = kernel, dict(named), target, device
        self.limits = limits.Limits.of(target, shared_bytes)
        self.candidates = [Candidate(index, config, words_of(config)) for index, config in enumerate(configs)]
        self._arguments: dict[int, dict[str, Any]] = {}
        self._keys: dict[int, str] = {}
        self._aliases: dict[int, dict[str, str]] = {}  # what TTIR of older versions calls a kernel's arguments
        self._jobs: dict[int, compiling.Job] = {}
        self._is_prepared = False

    def compile(self, deadline: float = compiling.DEADLINE, count: Optional[int] = None,
                frontier: Optional[foresight.Frontier] = None) -> Iterator[Candidate]:
        """Each candidate, as soon as its facts are there or a reason why not."""
        order = sorted(self.candidates, key=lambda one: (one.foreseen or 0.0, one.index))
        return (one for one in self.stream(order, deadline, count, frontier) if one is not None)

    def sketch(self, deadline: float = compiling.DEADLINE, count: Optional[int] = None) -> None:
        """What TTIR alone says of each candidate."""
        gpu = foresight.gpu_of(self.target.arch, self.device) if self.target.backend == "cuda" else None
        self._prepare_all()
        if gpu is None:
            return
        unknown = {self._keys[one.index]: self._jobs[one.index] for one in self.candidates
                   if one.index in self._jobs and self._keys[one.index] not in _compiled}
        found = compiling.sketch_all(list(unknown.values()), self.limits, deadline=deadline, count=count)
        for one in self.candidates:
            key = self._keys.get(one.index)
            made = _compiled.get(key) if key in _compiled else found.get(key)
            if isinstance(made, compiling.Failure):
                _remember(key, made)
            elif made is not None:
                text = made if isinstance(made, str) else made.ttir
                one.work = self._read(one, text)
                self._count_bytes(one)
                options = self._jobs[one.index][1].options
                one.foreseen = foresight.seconds(one.work, one.grid, options.num_warps, one.stages,
                                                 one.compulsory_bytes, gpu, self.target.arch == 90)

    def stream(self, candidates: Sequence[Candidate], deadline: float, count: Optional[int],
               frontier: Optional[foresight.Frontier] = None,
               waits: Callable[[], bool] = lambda: True) -> Iterator[Optional[Candidate]]:
        """The same of some candidates, begun in their order; None as from `children.run_all`. What the frontier does not
        want is dropped."""
        self._prepare_all()
        followers: dict[str, list[Candidate]] = {}
        finished: list[Candidate] = []

        def jobs() -> Iterator[compiling.Job]:
            for one in candidates:
                key = self._keys.get(one.index, "")
                if one.index not in self._jobs:
                    finished.append(one)
                elif key in _compiled:
                    self._absorb(one, _compiled[key])
                    finished.append(one)
                    if frontier:
                        frontier.note(one)
                elif key in followers:
                    followers[key].append(one)
                elif frontier and not frontier.wants(one):
                    one.drop(frontier.reason(one))
                    finished.append(one)
                else:
                    followers[key] = [one]
                    yield self._jobs[one.index]
        for done in compiling.compile_all(jobs(), self.limits, self.target, deadline=deadline, count=count, waits=waits):
            if done is not None:
                key, result = done
                _remember(key, result)
                for one in followers[key]:
                    self._absorb(one, result)
                    if frontier:
                        frontier.note(one)
                    finished.append(one)
            while finished:
                yield finished.pop(0)
            if done is None:
                yield None
        yield from finished

    def compiled(self, one: Candidate) -> Any:
        return _compiled.get(self._keys.get(one.index, ""))

    def _prepare_all(self) -> None:
        if self._is_prepared:
            return
        self._is_prepared = True
        for one in self.candidates:
            try:
                self._jobs[one.index] = self._prepare(one)
            except Exception as error:  # of the config, the heuristics, or Triton's own checks
                one.drop(f"{type(error).__name__}: {error}", reserve=False)

    def _prepare(self, one: Candidate) -> compiling.Job:
        _set_descriptors(one.config, self.named)
        made = source.specialise(self.kernel, self.named, one.config, self.target)
        arguments = source.arguments_of(self.kernel, self.named, one.config)
        self._arguments[one.index] = arguments
        one.grid = source.grid_of(self.named, arguments)
        one.stages = made.options.num_stages
        key = self._keys[one.index] = _identity(made)
        passed = [name for name, kind in made.signature.items() if kind != "constexpr"]
        self._aliases[one.index] = {f"arg{place}": name for place, name in enumerate(passed)
                                    if f"arg{place}" not in made.signature}
        return key, made, self._integers(one)

    def _integers(self, one: Candidate) -> dict[str, int]:
        arguments = self._arguments[one.index]
        named = {**arguments, **{alias: arguments.get(name) for alias, name in self._aliases[one.index].items()}}
        return {name: value for name, value in named.items() if isinstance(value, int)}

    def _read(self, one: Candidate, text: str) -> ttir.Work:
        work, aliases = ttir.read(text, self._integers(one)), self._aliases[one.index]
        work.reads = {aliases.get(name, name) for name in work.reads}
        work.writes = {aliases.get(name, name) for name in work.writes}
        return work

    def _absorb(self, one: Candidate, result: Any) -> None:
        if isinstance(result, compiling.Failure):
            one.drop(result.reason, reserve=False)
            return
        one.work = self._read(one, result.ttir)
        one.code = hashlib.sha256(result.binary or result.ptx).hexdigest()
        if self.target.backend != "cuda":
            return
        launch = self._launch(one, result)
        try:
            one.ptx = assembly.report(result.ptx, result.name, launch)
            one.cubin = assembly.report(result.binary, result.name, launch)
        except errors.Error as error:  # of a newer instruction set than the library knows
            one.ptx, one.cubin, one.unread = {}, {}, str(error)

    def _count_bytes(self, one: Candidate) -> tuple[float, float]:
        """Of the tensors that are read and written, which have to move once."""
        arguments = self._arguments[one.index]
        read = sum(bytes_of(arguments.get(name)) or 0.0 for name in one.work.reads)
        written = sum(bytes_of(arguments.get(name)) or 0.0 for name in one.work.writes)
        one.compulsory_bytes = read + written
        return read, written

    def _launch(self, one: Candidate, result: compiling.Compiled) -> assembly.Launch:
        work = one.work
        read, written = self._count_bytes(one)
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
