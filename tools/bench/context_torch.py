#!/usr/bin/env python3
"""The step of tools/bench/context_step on PyTorch, on request: a ring by hand, a process per rank with one thread, over gloo.

    context_torch.py --length N [--causal] [--zigzag]

Keys and values go around while the block that is here is computed by PyTorch's fused attention for the CPU; blocks are joined by their logarithms of sums
(Liu et al., 2023), the gradients of keys and values travel behind them. Blocks that the causal mask hides are not computed; with --zigzag positions stand so
that all ranks see as many. Its own context parallelism has no kernels for the CPU. Numbers and words are those of context_model.hpp and context_step.cpp.
It needs PyTorch 2.6 or later.
"""
import argparse

import torch
import torch.distributed as dist

from torch_peer import number, run

CHANNELS, HEADS = 512, 8
SIZE = CHANNELS // HEADS
RANKS = 2

forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class Ring:
    def __init__(self, rank):
        self.rank = rank
        self.next, self.last = (rank + 1) % RANKS, (rank - 1) % RANKS

    def pass_on(self, tensor):
        """Sends to the next rank and receives from the last one: what comes, and what to wait for."""
        comes = torch.empty_like(tensor)
        return comes, [dist.isend(tensor, self.next), dist.irecv(comes, self.last)], tensor

    @staticmethod
    def wait(passing):
        for work in passing[1]:
            work.wait()
        return passing[0]


class Seen:
    """Which of a rank's queries see which of the keys that began on another, and by which mask."""

    def __init__(self, causal, zigzag, rank):
        self.causal, self.zigzag, self.rank = causal, zigzag, rank

    def __call__(self, owner, length):
        """Slices of queries and keys, and whether the mask is a triangle; None: nothing."""
        whole, half = slice(0, length), length // 2
        if not self.causal or owner == self.rank:
            return whole, whole, self.causal
        if not self.zigzag:
            return (whole, whole, False) if owner < self.rank else None
        return (whole, slice(0, half), False) if owner < self.rank else (slice(half, length), whole, False)


class RingAttention(torch.autograd.Function):
    """q, k, v: [1, heads, positions of this rank, size]."""

    @staticmethod
    def forward(context, q, k, v, ring, seen):
        length = q.shape[2]
        here = torch.stack((k, v))
        out, sums = None, None
        for turn in range(RANKS):
            owner = (ring.rank - turn) % RANKS
            passing = ring.pass_on(here) if turn + 1 < RANKS else None
            if (block := seen(owner, length)) is not None:
                queries, keys, triangle = block
                part, part_sums = forward(q[:, :, queries], here[0][:, :, keys], here[1][:, :, keys], 0.0, triangle)
                if out is None:
                    out, sums = part, part_sums
                else:
                    before = sums[:, :, queries]
                    after = torch.logaddexp(before, part_sums)
                    out[:, :, queries] *= (before - after).exp().unsqueeze(-1)
                    out[:, :, queries] += part * (part_sums - after).exp().unsqueeze(-1)
                    sums[:, :, queries] = after
            if passing is not None:
                here = ring.wait(passing)
        context.save_for_backward(q, k, v, out, sums)
        context.ring, context.seen = ring, seen
        return out

    @staticmethod
    def backward(context, gradient):
        q, k, v, out, sums = context.saved_tensors
        ring, seen, length = context.ring, context.seen, q.shape[2]
        here, travels = torch.stack((k, v)), None
        dq = torch.zeros_like(q)
        for turn in range(RANKS):
            owner = (ring.rank - turn) % RANKS
            passing = ring.pass_on(here) if turn + 1 < RANKS else None
            own = torch.zeros_like(here)
            if (block := seen(owner, length)) is not None:
                queries, keys, triangle = block
                parts = backward(gradient[:, :, queries], q[:, :, queries], here[0][:, :, keys], here[1][:, :, keys], out[:, :, queries],
                                 sums[:, :, queries], 0.0, triangle)
                dq[:, :, queries] += parts[0]
                own[0][:, :, keys], own[1][:, :, keys] = parts[1], parts[2]
            if travels is not None:
                own += ring.wait(travels)
            travels = ring.pass_on(own)
            if passing is not None:
                here = ring.wait(passing)
        dk, dv = ring.wait(travels)
        return dq, dk, dv, None, None


def positions(length, zigzag, rank):
    if not zigzag:
        return torch.arange(length).chunk(RANKS)[rank]
    chunks = torch.arange(length).chunk(2 * RANKS)
    return torch.cat((chunks[rank], chunks[2 * RANKS - 1 - rank]))


class Step:
    def __init__(self, options, rank):
        self.ring, self.seen = Ring(rank), Seen(options.causal, options.zigzag, rank)
        self.qkv = number(0, (CHANNELS, 3 * CHANNELS), spread=0.07).requires_grad_()
        self.projection = number(1, (CHANNELS, CHANNELS), spread=0.07).requires_grad_()
        x = number(2, (1, options.length, CHANNELS))
        self.elements = x.numel()
        self.x = x[:, positions(options.length, options.zigzag, rank)].contiguous()

    def step(self):
        parameters = (self.qkv, self.projection)
        q, k, v = ((self.x @ self.qkv).unflatten(-1, (3, HEADS, SIZE)).select(2, part).transpose(1, 2).contiguous() for part in range(3))
        y = RingAttention.apply(q, k, v, self.ring, self.seen).transpose(1, 2).flatten(2)
        loss = (self.x + y @ self.projection).square().sum() / self.elements
        gradients = torch.autograd.grad(loss, parameters)
        for gradient in gradients:
            dist.all_reduce(gradient)
        loss = loss.detach()
        dist.all_reduce(loss)
        norm = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter.add_(gradient, alpha=0.0)
        return loss, norm

    def checked(self, loss, norm):
        yield "loss", loss
        yield "norm", norm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--zigzag", action="store_true")
    options = parser.parse_args()
    options.ranks = RANKS
    run(Step, options)


if __name__ == "__main__":
    main()
