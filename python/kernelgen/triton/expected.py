"""The time that a config is expected to take, from what the compiler made of it.

Kernels with products in a loop: the time model of staged products, src/gen/cuda/contract/cuda_contract_time.c, fed by
facts instead of by a config: grid, occupancy, registers and opcodes from the cubin, tiles, trips and bytes from TTIR.
Its constants are those of `kg_cuda_contract_times_of_space` and `measured` of the form for mma.sync, fitted to 632
configs of this project's own kernels on an H100. Other kernels: the estimate of libkernelgen (docs/model.md).

Times order candidates of one call. They are not predictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from . import ttir

LAUNCH = 4.71e-6
SHARED_RATE = 109e9  # bytes a second at which an SM fills shared memory
L2_LATENCY, MEMORY_LATENCY = 0.957e-6, 0.0931e-6
BANDWIDTH_SHARE, MEMORY_START = 0.838, 0.819e-6
REREAD_SHARE, OVERLAP_LOSS = 0.321, 0.279
EXPOSED_LATENCY, EXPOSED_END = 0.00116, 1.6
TILE_END, TILE_STORE = 0.0661e-6, 0.662e-6  # fixed, and for 128 by 128 sums
BUSY_STAGES = 1.1  # buffers that cannot be filled: Triton's loop refills one as soon as its product is done
STEP = 40e-9  # of a trip, when nothing else is resident: the barrier, and the wait for the copy (a guess)
WGMMA_SHARE, FULL_COLUMNS, OPERAND_READ = 0.81, 68.2, 0.332e-12
MMA_SHARE = 0.55
WGMMA_OPCODES = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
SCHEDULERS = 4  # of an SM; each issues an instruction a clock


@dataclass(frozen=True)
class Facts:
    """What the time of a config depends on."""

    grid: int  # blocks
    blocks: int  # resident on an SM
    threads: int  # of a block
    stages: int  # buffers of a loop
    work: ttir.Work
    compulsory_bytes: float
    kernel: Mapping[str, Any]  # the report of the cubin


def _main_loop(kernel: Mapping[str, Any]) -> Mapping[str, Any]:
    index = kernel.get("main_loop")
    return kernel["loops"][index] if index is not None else {}


def _multiply_seconds(facts: Facts, dot: ttir.Dot, rate: float) -> float:
    """Of one trip of a product, on an SM of this rate."""
    flops = 2.0 * dot.batch * dot.m * dot.n * dot.k
    element = dot.bits / 8
    if any(name.startswith(WGMMA_OPCODES) for name in facts.kernel["opcodes"]):
        groups = max(1, facts.threads // 128)  # warp groups; along M as far as they have 64 rows each
        down = min(groups, max(1, dot.m // 64))
        rows, columns = dot.m / down, dot.n / max(1, groups // down)
        read = groups * (rows + rows / 64 * columns) * dot.k * element
        return flops / (rate * WGMMA_SHARE) * max(1.0, FULL_COLUMNS / columns) + OPERAND_READ * read
    down = 2 ** math.ceil(math.log2(max(1, facts.threads // 32)) / 2)  # warps, in a grid that is about square
    across = max(1, facts.threads // 32 // down)
    read = facts.threads // 32 * (dot.m / down + dot.n / across) * dot.k * element / (SHARED_RATE * 1.1)
    return max(flops / (rate * MMA_SHARE), read)


def product_seconds(facts: Facts) -> float:
    gpu = facts.kernel["gpu"]
    dots = [dot for dot in facts.work.dots if dot.in_loop] or facts.work.dots
    steps = max(1.0, max(dot.trips for dot in dots))
    rates = gpu["matrix_flops_per_second"]
    multiply = 0.0
    for dot in dots:
        rate = rates["8_bits"] if dot.bits <= 8 else rates["16_bits"] if dot.bits == 16 else rates["tf32"]
        rate = (rate or 1e12) / gpu["sms"]
        multiply += _multiply_seconds(facts, dot, rate) * dot.trips / steps
    of_unit = math.ceil(facts.grid / gpu["sms"])  # programs of the busiest SM
    resident = gpu["sms"] * facts.blocks
    waves = math.ceil(facts.grid / resident)
    issue = (_main_loop(facts.kernel).get("instructions") or 0.0) * facts.threads / 32 / SCHEDULERS / gpu["clock_hz"]
    fill = facts.work.read_bytes / steps / SHARED_RATE
    stage = max(multiply, fill, issue)
    copied = facts.work.read_bytes * facts.grid
    fresh = min(1.0, facts.compulsory_bytes / copied) if copied else 1.0
    delay = L2_LATENCY + fresh * MEMORY_LATENCY
    latency = (delay + BUSY_STAGES * multiply) / max(1, facts.stages)
    busy = of_unit * steps * stage + EXPOSED_LATENCY * steps * latency
    one = waves * steps * (max(stage, latency) + STEP / facts.blocks)
    sums = max(dot.batch * dot.m * dot.n for dot in dots)
    finish = TILE_END + TILE_STORE * sums / 128 ** 2
    exposed = 1 + EXPOSED_END * (waves - 1) if facts.blocks > 1 else waves
    units = max(busy, one) + finish * exposed
    memory = MEMORY_START + facts.compulsory_bytes / (gpu["bytes_per_second"] * BANDWIDTH_SHARE)
    if copied > facts.compulsory_bytes:
        memory += REREAD_SHARE * (copied - facts.compulsory_bytes) / (SHARED_RATE * gpu["sms"])
    longer = max(units, memory)
    return LAUNCH + longer + OVERLAP_LOSS * (units + memory - longer)


def spill_factor(kernel: Mapping[str, Any]) -> float:
    """1, or more where registers are saved and reloaded in the main loop."""
    loop = _main_loop(kernel)
    spilled = (loop.get("spill_loads") or 0) + (loop.get("spill_stores") or 0)
    return math.exp(spilled / loop["instructions"]) if spilled and loop.get("instructions") else 1.0


def seconds(facts: Facts) -> Optional[float]:
    """None: there is nothing to go by."""
    if facts.blocks <= 0 or facts.grid <= 0 or not facts.kernel.get("gpu"):
        return None
    if facts.work.flops > 0 and facts.work.exact:
        return product_seconds(facts) * spill_factor(facts.kernel)
    model = facts.kernel.get("model")
    return model["estimate_seconds"] if model else None
