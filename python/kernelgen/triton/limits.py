"""What a device can hold, and the rules that refuse a config before the compiler proper sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from . import ttir

# Shared memory that one block can have, in bytes, by compute capability (CUDA C++ Programming Guide, technical
# specifications). Others: what the smallest of these has.
SHARED_BYTES = {70: 98304, 72: 98304, 75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448,
                100: 232448, 101: 232448, 103: 232448, 110: 232448, 120: 101376, 121: 101376}
THREAD_REGISTERS = 255
_ALLOCATED = re.compile(r"ttg\.local_alloc\s*:\s*\(\)\s*->\s*!ttg\.memdesc<((?:\d+x)+)(\w+)")


@dataclass(frozen=True)
class Limits:
    shared_bytes: int
    warp: int = 32
    sums_in_registers: bool = True  # False: matrix units keep them in a memory of their own

    @classmethod
    def of(cls, target: Any, shared_bytes: Optional[int] = None) -> Limits:
        known = SHARED_BYTES.get(target.arch) if isinstance(target.arch, int) else None
        return cls(shared_bytes or known or (max(SHARED_BYTES.values()) if target.backend != "cuda" else 65536),
                   target.warp_size, target.backend == "cuda" and not 100 <= int(target.arch) < 120)

    def too_much_shared(self, needed: float) -> Optional[str]:
        if needed <= self.shared_bytes:
            return None
        return f"needs {needed:.0f} bytes of shared memory; a block can have {self.shared_bytes}"

    def refusal(self, stage: str, module: Any, options: Any, arguments: Mapping[str, Any]) -> Optional[str]:
        """Why a config goes no further than this stage of Triton's compiler; None: it goes on."""
        text = str(module)
        if stage == "ttir":
            return self._by_tiles(ttir.read(text, arguments), options)
        allocated = 0.0
        for dimensions, element in _ALLOCATED.findall(text):
            elements = 1
            for size in dimensions.split("x"):
                elements *= int(size) if size else 1
            allocated += elements * ttir.bits_of(element) / 8
        reason = self.too_much_shared(allocated)
        return reason and f"{reason} (buffers of its loops alone)"

    def _by_tiles(self, work: ttir.Work, options: Any) -> Optional[str]:
        """By what no compiler can do without: registers for sums, and buffers for tiles that are copied ahead."""
        threads = options.num_warps * self.warp
        for dot in work.dots:
            sums = dot.batch * dot.m * dot.n / options.num_ctas / threads
            if self.sums_in_registers and sums > THREAD_REGISTERS:
                return (f"the sums of a product of {dot.m} by {dot.n} take {sums:.0f} registers of each of "
                        f"{threads} threads, which have {THREAD_REGISTERS}")
            if dot.in_loop:
                ahead = max(1, options.num_stages - 1)
                reason = self.too_much_shared(dot.loaded_bytes / options.num_ctas * ahead)
                if reason:
                    return f"{reason} (tiles of {dot.m} by {dot.k} and {dot.k} by {dot.n}, {ahead} ahead)"
        return None
