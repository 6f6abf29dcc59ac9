"""What a config is expected to take before it is compiled, and which configs need not be compiled at all.

TTIR has the tiles, the trips and the bytes; what only the compiler knows, the registers, is set to the least there can
be. For 226 configs of examples/triton_gemm and eight products, compiled for sm_90a, the model's time with all facts is
never less than 0.94 of this, and the 22 configs that the model keeps are among the first 43 by it.
"""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import Any, Mapping, Optional

from .. import errors
from . import assembly, config_judges, expected, ttir

MARGIN = 0.93  # an expected time may be too long by so much
RESERVE_SHARE = 2  # times the number that is kept must be refused, with nothing that passes, before it is believed
SM_THREADS, SM_REGISTERS, SM_BLOCKS = 2048, 65536, 32
OTHER_REGISTERS = 32  # of a thread, beside its sums


@lru_cache(maxsize=None)
def gpu_of(arch: int, device: Optional[str]) -> Optional[Mapping[str, Any]]:
    """What libkernelgen knows of a GPU, which it says with any report."""
    code = f".version 8.0\n.target sm_{arch}\n.address_size 64\n.visible .entry x()\n{{\n ret;\n}}\n"
    try:
        found = assembly.report(code.encode(), "x", assembly.Launch(device=device)).get("gpu")
    except errors.Error:
        return None
    return found if found and found.get("matrix_flops_per_second") else None


def seconds(work: ttir.Work, grid: Optional[tuple[int, ...]], warps: int, stages: int, compulsory_bytes: float,
            gpu: Mapping[str, Any], is_wgmma: bool) -> Optional[float]:
    """None: there is nothing to go by."""
    if not grid or not work.exact or not work.flops:
        return None
    threads = 32 * warps
    dot = max(work.dots, key=lambda one: one.batch * one.m * one.n)
    registers = dot.batch * dot.m * dot.n / threads + OTHER_REGISTERS
    buffers = max(one.loaded_bytes for one in work.dots) * max(1, stages) + 1024
    blocks = max(1, min(SM_THREADS // threads, int(gpu["block_shared_bytes"] // buffers),
                        int(SM_REGISTERS // (registers * threads)), SM_BLOCKS))
    kernel = {"gpu": gpu, "opcodes": {"HGMMA" if is_wgmma and dot.m >= 64 and warps >= 4 else "HMMA": 1},
              "main_loop": None}
    return expected.product_seconds(expected.Facts(math.prod(grid), blocks, threads, stages, work, compulsory_bytes,
                                                   kernel))


class Frontier:
    """The scores of what is compiled, for deciding what else is worth it."""

    def __init__(self, judge: Any, keep: Optional[int]) -> None:
        """`keep`: configs that will be kept; None: all are compiled."""
        self.score = config_judges.score_of(judge)
        self.keep = keep if judge == "model" else None
        self.scores: dict[int, float] = {}  # of what passes the gates
        self._reserve: dict[int, float] = {}  # of what does not pass, but may run
        self._codes: set[Any] = set()

    def note(self, one: config_judges.Candidate) -> None:
        """One that was compiled, or dropped."""
        judged = copy.copy(one)
        if judged.reason is None:
            config_judges.apply_gates([judged])
        code = (one.code, one.grid) if one.code else one.index
        if (judged.reason is not None and not judged.is_reserve) or self.score is None or code in self._codes:
            return
        try:
            value = self.score(judged)
        except Exception:  # of a user's function, or of a fact that is not there
            value = None
        if value is not None and not math.isnan(value):
            (self.scores if judged.reason is None else self._reserve)[one.index] = value
            self._codes.add(code)

    def _last_kept(self) -> float:
        """Infinite: not known yet. Where the gates refuse everything, the reserve is what will be kept."""
        keep = self.keep or 1
        if len(self.scores) >= keep:
            return sorted(self.scores.values())[keep - 1]
        if not self.scores and len(self._reserve) >= RESERVE_SHARE * keep:
            return sorted(self._reserve.values())[keep - 1]
        return math.inf

    def wants(self, one: config_judges.Candidate) -> bool:
        """Whether it is worth compiling."""
        if self.keep is None or one.foreseen is None:
            return True
        return one.foreseen * MARGIN <= self._last_kept()

    def reason(self, one: config_judges.Candidate) -> str:
        return (f"not compiled: by its TTIR it is expected to take {1e6 * (one.foreseen or 0):.2f} us; of those compiled, "
                f"number {self.keep} takes {1e6 * self._last_kept():.2f} us")
