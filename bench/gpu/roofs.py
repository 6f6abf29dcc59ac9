"""Reference speeds: kernels that move or read as many bytes and do nothing else."""

import torch

import triton_kernels as peers


def read_kernel(clock, size):
    """The fastest of a few shapes of the kernel that reads, at 0.5 GB."""
    times = clock.cold({shape: read_of(size, shape) for shape in peers.READ_SHAPES})
    best = min(times, key=times.get)
    print(f"read: {size / times[best] * 1e-3:.0f} GB/s with {best[1]} vectors of "
          f"{best[0]} words by {best[2]} warps")
    return best


def fastest_read(clock, size):
    """A run that reads this many bytes: of the shapes of the kernel, the fastest for them."""
    runs = {shape: read_of(size, shape) for shape in peers.READ_SHAPES}
    times = clock.cold(runs)
    return runs[min(times, key=times.get)]


def copy_of(count):
    """A run that moves this many bytes: half are read, half written."""
    source = torch.empty(count // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def read_of(count, shape):
    source = torch.randint(0, 1 << 30, (count // 4,), dtype=torch.int32, device="cuda")
    out = torch.empty(1 << 21, dtype=torch.int32, device="cuda")
    return lambda: peers.read(out, source, shape)
