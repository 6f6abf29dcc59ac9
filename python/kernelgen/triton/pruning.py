"""A function for `prune_configs_by={"early_config_prune": ...}`, by what the compiler made of each config."""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence

from .. import errors
from . import analysis, compiling, config_judges, foresight, reasons, source

FRAMES = 12  # how far up the callers are asked for their kernel


@dataclass
class Outcome:
    """What one call of a pruner did."""

    kernel: str
    total: int
    kept: list[Any] = field(default_factory=list)  # configs, the best first
    reserve: list[Any] = field(default_factory=list)  # to be tried if none of these runs
    dropped: list[tuple[Any, str]] = field(default_factory=list)  # config, reason
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    candidates: list[config_judges.Candidate] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {len(self.kept)} of {self.total} configs kept in {self.seconds:.1f} s",
                 *(f"  {remark}" for remark in self.remarks),
                 *(f"  kept     {analysis.words_of(config)}" for config in self.kept),
                 *(f"  dropped  {analysis.words_of(config)}: {reason}" for config, reason in self.dropped)]
        return "\n".join(lines)


def _holds(value: Any, pruner: Any) -> bool:
    members = getattr(value, "__dict__", None)
    return isinstance(members, dict) and members.get("early_config_prune") is pruner and "fn" in members


def kernel_of(pruner: Any, named: Mapping[str, Any]) -> Any:
    """The kernel of the tuner that is calling, which gives its pruner everything but that."""
    frame: Any = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            break
        for value in list(frame.f_locals.values()):
            if _holds(value, pruner):
                return value.fn
        frame = frame.f_back
    tuners = [value for value in gc.get_referrers(pruner) if _holds(value, pruner)]
    tuners += [owner for members in gc.get_referrers(pruner) if isinstance(members, dict)
               for owner in gc.get_referrers(members) if _holds(owner, pruner)]
    fitting = {id(tuner.fn): tuner.fn for tuner in tuners
               if set(named) <= set(getattr(tuner, "arg_names", ())) | {"grid", "warmup"}}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    raise errors.ArgumentError("the kernel whose configs are to be pruned cannot be told from the call; give it: "
                               "prune(kernel=lambda: my_kernel)")


def run(kernel: Any, configs: Sequence[Any], named: Mapping[str, Any], *, top: Any = 0.2, judge: Any = "model",
        target: Any = None, device: Optional[str] = None, shared_bytes: Optional[int] = None,
        deadline: float = compiling.DEADLINE, workers: Optional[int] = None) -> Outcome:
    """Prunes the configs of one call. `named`: the call's arguments by name, and its `grid`."""
    begin = time.monotonic()
    config_judges.score_of(judge)
    count = config_judges.count_of(top, len(configs))
    function, _ = source.unwrapped(kernel)
    outcome = Outcome(getattr(function, "__name__", str(function)), len(configs))
    if source.is_interpreted(kernel):
        outcome.kept = list(configs[:1])
        outcome.dropped = [(config, "Triton's interpreter compiles nothing: all configs are alike")
                           for config in configs[1:]]
    else:
        target = source.make_target(target)
        found = analysis.Analysis(kernel, configs, named, target, device=device or analysis.device_name(target),
                                  shared_bytes=shared_bytes)
        if judge == "model":
            found.sketch(deadline, workers)
        for _ in found.compile(deadline, workers, foresight.Frontier(judge, count)):
            pass
        outcome.candidates = found.candidates
        finish(outcome, top, judge)
    outcome.seconds = time.monotonic() - begin
    _log(outcome)
    return outcome


def finish(outcome: Outcome, top: Any, judge: Any) -> None:
    """Selects among candidates whose facts are known."""
    unread = [one for one in outcome.candidates if one.unread]
    if unread:
        outcome.remarks.append(f"the code of {len(unread)} configs was not understood: {unread[0].unread}")
    remark = config_judges.select(outcome.candidates, top, judge)
    if remark:
        outcome.remarks.append(remark)

    def order(one: config_judges.Candidate) -> tuple[float, int]:
        return one.score if one.score is not None else 0.0, one.index

    kept = sorted((one for one in outcome.candidates if one.reason is None), key=order)
    reserve = sorted((one for one in outcome.candidates if one.reason and one.is_reserve), key=order)
    outcome.kept, outcome.reserve = [one.config for one in kept], [one.config for one in reserve]
    outcome.dropped = [(one.config, one.reason) for one in outcome.candidates if one.reason]


def _log(outcome: Outcome) -> None:
    if not reasons.destination():
        return
    for config, reason in outcome.dropped:
        reasons.tell("dropped", kernel=outcome.kernel, config=analysis.words_of(config), reason=reason)
    for config in outcome.kept:
        reasons.tell("kept", kernel=outcome.kernel, config=analysis.words_of(config))
    reasons.tell("pruned", kernel=outcome.kernel, kept=len(outcome.kept), configs=outcome.total,
                 seconds=round(outcome.seconds, 3), remarks="; ".join(outcome.remarks))


def prune(top: Any = 0.2, judge: Any = "model", *, kernel: Any = None, target: Any = None,
          device: Optional[str] = None, deadline: float = compiling.DEADLINE,
          workers: Optional[int] = None) -> Callable[..., list[Any]]:
    """A function for the slot `early_config_prune` of `triton.autotune`, and of tuners that take its options.

    top        what is kept: a share (0.2), rounded down but never to nothing, or a number of configs
    judge      "gates": drops what cannot be good; "points": the +10/+2/-30/-5 score of the PTX; "model": the time
               that is expected from the code; or a function of a Candidate, the smaller the better
    kernel     the kernel, or a function that returns it; otherwise the calling tuner's
    target     what to compile for ("sm_90a", a GPUTarget); otherwise the current device: needs no GPU if given
    device     a GPU's name for the model, such as "h200"
    deadline   seconds that one config may be compiled, in a process that is then killed
    workers    configs that are compiled at once; otherwise as many as there are processors

    The function's `last` is the Outcome of its last call. If pruning itself fails, all configs are kept and the
    reason is logged. KERNELGEN_LOG=stderr, or a file, has the fate of each config.
    """
    config_judges.score_of(judge)
    config_judges.count_of(top, 1)

    def early_config_prune(configs: list[Any], named_args: dict[str, Any], **kwargs: Any) -> list[Any]:
        try:
            found = kernel if kernel is not None else kernel_of(early_config_prune, named_args)
            if not hasattr(found, "arg_names") and callable(found):
                found = found()
            outcome = run(found, configs, {**named_args, **kwargs}, top=top, judge=judge, target=target,
                          device=device, deadline=deadline, workers=workers)
        except Exception as error:  # whatever it is, tuning goes on with all configs
            outcome = Outcome("?", len(configs), kept=list(configs), remarks=[f"not pruned: {error}"])
            reasons.tell("not pruned", reason=f"{type(error).__name__}: {error}")
            _warn(f"{type(error).__name__}: {error}")
        early_config_prune.last = outcome  # type: ignore[attr-defined]
        return list(outcome.kept)

    early_config_prune.last = None  # type: ignore[attr-defined]
    return early_config_prune


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Once for each text."""
    if text in _warned:
        return
    _warned.add(text)
    from ..library import log
    log.warning("kernelgen.triton: configs are not pruned: %s", text)
