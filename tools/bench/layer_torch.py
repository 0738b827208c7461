#!/usr/bin/env python3
"""The step of tools/bench/layer_step on PyTorch, on request: its own tensor parallelism, a process per rank, over gloo, one thread each.

    layer_torch.py --layers 1|4 --ranks N [--sequence]

Modules, numbers and words are those of layer_model.hpp and layer_step.cpp. It needs PyTorch 2.6 or later.
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

from torch_peer import number, run

CHANNELS, HEADS, CONTEXT = 768, 12, 512
SIZE, INNER = CHANNELS // HEADS, 4 * CHANNELS

# The library's names and whole shapes of one layer, mean and spread of its numbers, and the parameter here.
NUMBERS = [
    ("norm1.gain", (CHANNELS,), 1, 0.1, "norm1.weight"),
    ("norm1.shift", (CHANNELS,), 0, 0.1, "norm1.bias"),
    ("attention.qkv", (CHANNELS, 3, HEADS, SIZE), 0, 0.07, "qkv.weight"),
    ("attention.qkv_bias", (3, HEADS, SIZE), 0, 0.1, "qkv.bias"),
    ("attention.projection", (CHANNELS, CHANNELS), 0, 0.07, "projection.weight"),
    ("attention.projection_bias", (CHANNELS,), 0, 0.1, "projection.bias"),
    ("norm2.gain", (CHANNELS,), 1, 0.1, "norm2.weight"),
    ("norm2.shift", (CHANNELS,), 0, 0.1, "norm2.bias"),
    ("mlp.up", (CHANNELS, INNER), 0, 0.07, "up.weight"),
    ("mlp.up_bias", (INNER,), 0, 0.1, "up.bias"),
    ("mlp.down", (INNER, CHANNELS), 0, 0.07, "down.weight"),
    ("mlp.down_bias", (CHANNELS,), 0, 0.1, "down.bias"),
]
INPUT, TARGET = 12, 13


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
        self.qkv, self.projection = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS)
        self.up, self.down = nn.Linear(CHANNELS, INNER), nn.Linear(INNER, CHANNELS)

    def forward(self, x):
        # Columns of qkv are [heads, 3, size], so that a rank's are its heads.
        q, k, v = (part.transpose(1, 2) for part in self.qkv(self.norm1(x)).unflatten(-1, (-1, 3, SIZE)).unbind(3))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.projection(attended)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def here(name, value):
    """A tensor of the library's as PyTorch's modules hold it."""
    if name == "attention.qkv":
        return value.permute(2, 1, 3, 0).reshape(3 * CHANNELS, CHANNELS)
    if name == "attention.qkv_bias":
        return value.permute(1, 0, 2).reshape(3 * CHANNELS)
    return value.t() if value.dim() == 2 else value


class Step:
    def __init__(self, options, rank):
        self.ranks, self.sequence = options.ranks, options.sequence
        self.mesh = init_device_mesh("cpu", (options.ranks,)) if options.ranks > 1 else None
        batch = 2 if options.layers == 1 else 1
        self.model = nn.Sequential(*(Block() for _ in range(options.layers)))
        with torch.no_grad():
            for index, block in enumerate(self.model):
                for which, (name, shape, mean, spread, own) in enumerate(NUMBERS):
                    first = index * torch.Size(shape).numel()
                    block.get_parameter(own).copy_(here(name, number(which, shape, first, mean, spread)))
        if self.mesh is not None:
            for block in self.model:
                parallelize_module(block, self.mesh, self.plan())
        self.x, self.target = (number(which, (batch, CONTEXT, CHANNELS)) for which in (INPUT, TARGET))
        if self.sequence:
            self.x, self.target = (t.chunk(options.ranks, 1)[rank].contiguous() for t in (self.x, self.target))
        self.x.requires_grad_()
        self.elements = batch * CONTEXT * CHANNELS

    def plan(self):
        if not self.sequence:
            return {"qkv": ColwiseParallel(), "projection": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
        along, split = Shard(1), dict(input_layouts=Shard(1))
        return {"norm1": SequenceParallel(use_local_output=True), "norm2": SequenceParallel(use_local_output=True),
                "qkv": ColwiseParallel(**split), "up": ColwiseParallel(**split),
                "projection": RowwiseParallel(output_layouts=along), "down": RowwiseParallel(output_layouts=along)}

    def added(self, value):
        """The sum over all ranks."""
        if self.mesh is not None:
            dist.all_reduce(value)
        return value

    def gradients(self):
        """This rank's parts: those that each rank has a part of, and those that each has whole."""
        split, whole = [], []
        for parameter in self.model.parameters():
            gradient = parameter.grad
            if isinstance(gradient, DTensor):
                if gradient.placements[0].is_partial():
                    gradient = gradient.redistribute(placements=[Replicate()])
                (split if gradient.placements[0].is_shard() else whole).append(gradient.to_local())
            else:
                whole.append(gradient)
        return split, whole

    def step(self):
        self.model.zero_grad(set_to_none=True)
        self.x.grad = None
        loss = (self.model(self.x) - self.target).square().sum() / self.elements
        loss.backward()
        split, whole = self.gradients()
        squares = sum(n.square() for n in torch._foreach_norm(whole))
        if split:
            squares = squares + self.added(sum(n.square() for n in torch._foreach_norm(split)))
        loss = loss.detach()
        return (self.added(loss.clone()) if self.sequence else loss), squares.sqrt()

    def checked(self, loss, norm):
        yield "loss", loss
        yield "norm", norm
        for name, _, _, _, own in NUMBERS:
            total = torch.zeros((), dtype=torch.float64)
            for block in self.model:
                gradient = block.get_parameter(own).grad
                if isinstance(gradient, DTensor):
                    gradient = gradient.full_tensor()
                total += gradient.double().square().sum()
            yield "blocks.*." + name, total.sqrt()
        squares = self.x.grad.double().square().sum()
        yield "input", (self.added(squares) if self.sequence else squares).sqrt()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, choices=(1, 4), required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--sequence", action="store_true")
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
