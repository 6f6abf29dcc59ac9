"""`kernelgen.triton.autotune`: the decorator of Triton with this package's search behind it (docs/triton-tuning.md)."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, Callable, Optional, Sequence

from ..library import log
from . import compiling, config_judges, launch_timer, progress, search, source, tuner


@lru_cache(maxsize=None)
def _tuner_class() -> type:
    """Made when it is first needed: this package imports no Triton before."""
    from triton.runtime.autotuner import Autotuner as base
    return type("Autotuner", (tuner.Tuner, base), {"__doc__": "Triton's Autotuner with KernelGen's search behind it."})


def _bench_of_triton(call: Any, quantiles: Any) -> Any:
    """For Triton's own methods. Given to its constructor, which in 3.3 asks for a device otherwise."""
    return source.triton().runtime.driver.active.get_benchmarker()(call, quantiles=quantiles)


def with_registers(configs: Sequence[Any], limits: Sequence[Optional[int]]) -> list[Any]:
    """Each config with each limit of registers a thread; None: without one."""
    if not limits:
        return list(configs)
    kind = source.triton().Config
    if "maxnreg" not in inspect.signature(kind).parameters:
        log.warning("kernelgen.triton: Triton %s has no maxnreg; configs stay as they are", source.triton().__version__)
        return list(configs)
    found = []
    for config in configs:
        for limit in limits:
            made = kind.__new__(kind)
            made.__dict__.update(config.__dict__, kwargs=dict(config.kwargs))
            made.maxnreg = limit if limit is not None else config.maxnreg
            found.append(made)
    return found


def autotune(configs: Sequence[Any], key: Sequence[str], prune_configs_by: Optional[dict[str, Any]] = None,
             reset_to_zero: Optional[Sequence[str]] = None, restore_value: Optional[Sequence[str]] = None,
             pre_hook: Any = None, post_hook: Any = None, warmup: Optional[float] = None, rep: Optional[float] = None,
             use_cuda_graph: bool = False, do_bench: Any = None, cache_results: bool = True, *, top: Any = 0.2,
             judge: Any = "model", maxnreg: Sequence[Optional[int]] = (), frozen: Optional[bool] = None,
             shipped: Any = None, progress: progress.Progress = None, deadline: float = compiling.DEADLINE,
             workers: Optional[int] = None, patience: float = 600.0, target: Any = None,
             device: Optional[str] = None, timer: Any = None) -> Callable[[Any], Any]:
    """triton.autotune with the same arguments, and these:

    top, judge, deadline, workers   as of `prune`; at least four configs are measured
    maxnreg     limits of registers a thread, each tried with each config: (None, 128, 168)
    frozen      True: never tunes; None: if KERNELGEN_FROZEN=1
    shipped     a file or a folder that `save` wrote
    progress    None: a line on a terminal; True, False; or a function of (what, done, total)
    patience    seconds to wait for another process that tunes the same
    cache_results   False: nothing is read from or written to the records under KERNELGEN_HOME
    target, device  what to compile for, and the device's name in records; otherwise the current device's
    timer       a function that measures: (Launch, milliseconds of the best so far) -> Timing
    """
    config_judges.score_of(judge)
    config_judges.count_of(top, 1)
    options = search.Options(top, judge, deadline, workers)
    own = prune_configs_by
    if own and hasattr(own.get("early_config_prune"), "last"):  # the pruner of this package: it is in the search
        own = {name: value for name, value in own.items() if name != "early_config_prune"}

    def decorator(fn: Any) -> Any:
        source.triton()
        all_configs = with_registers(configs, maxnreg)
        found = _tuner_class()(fn, fn.arg_names, all_configs, list(key), reset_to_zero, restore_value, pre_hook=pre_hook,
                               post_hook=post_hook, prune_configs_by=own, do_bench=do_bench or _bench_of_triton)
        found.set_up(options, frozen=frozen, target=target, device=device, keep=cache_results, shipped=shipped,
                     timer=lambda: timer or launch_timer.timer_for(do_bench, warmup, rep, use_cuda_graph), show=progress,
                     patience=patience)
        return found
    return decorator
