"""Humming (the package humming-kernels) as a peer for w4a16_worker.py: products with weights of 4
bits that have one scale for a column or for each group of it, by its own rule.

It takes codes along K, eight in a word, and rounds weights to 16 bits once they are scaled.
"""

import torch


def words_along(codes):
    """Codes of 4 bits, eight of a line in each i32, the first in the lowest bits."""
    parts = codes.view(codes.shape[0], -1, 2)
    return (parts[..., 0] | parts[..., 1] << 4).contiguous().view(torch.int32)


def product(x, y, codes, scales, zeros, run):
    """Runs y = x @ weights: `codes` [K, N], `scales` [groups, N], `zeros` alike or None; without
    zeros the codes stand for -8 to 7. `run`: rows of K with one scale; 0: all."""
    from humming.layer import HummingLayer
    count, length = codes.shape[1], codes.shape[0]
    layer = HummingLayer(
        shape_n=count, shape_k=length, torch_dtype=x.dtype,
        weight_config=dict(dtype="uint4", group_size=run, has_zero_point=zeros is not None))
    tensors = dict(weight=words_along(codes.t().contiguous()),
                   weight_scale=scales.t().contiguous())
    if zeros is not None:
        tensors["zero_point"] = words_along(zeros).t().contiguous()
    for name, tensor in tensors.items():
        there = getattr(layer, name)
        if there.shape != tensor.shape or there.dtype != tensor.dtype:
            raise ValueError(f"{name} is {tuple(tensor.shape)}, wanted {tuple(there.shape)}")
    layer = layer.cuda()
    layer.load_from_tensors(tensors)
    layer.transform()
    return lambda: layer(x, outputs=y)
