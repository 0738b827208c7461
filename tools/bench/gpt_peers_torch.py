#!/usr/bin/env python3
"""The training step of tools/bench/gpt_peers_step on PyTorch, on request: tools/bench/gpt_peers asks, by turns with other peers.

    gpt_peers_torch.py --model A|B|C [--threads N] [--compile]
    gpt_peers_torch.py --model A|B|C --ranks N --way ddp|zero1|fsdp|tensor|both [--compile]

Fused attention and the fused AdamW; over several ranks, a process with one thread each, by DistributedDataParallel, as it is or with
ZeroRedundancyOptimizer, by FSDP2's fully_shard, or by parallelize_module on DTensors, whose head and loss are split by the vocabulary, over gloo.
`both` splits the batch over half of the ranks, by fully_shard, and every layer over two.
Prints what torch_peer.py says. It needs PyTorch 2.6 or later.
"""
import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from gpt_peers_model import BETAS, CLIP, DECAY, EPSILON, RATE, SIZES, texts, weights
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch_peer import averaged_over_gloo, decayed, run


class Block(nn.Module):
    def __init__(self, size, by_heads):
        """`by_heads`: columns of qkv are [heads, 3, size], so that a rank's are its heads, and not [3, heads, size]."""
        super().__init__()
        c = size.channels
        self.heads, self.by_heads, self.size = size.heads, by_heads, c // size.heads
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.projection = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        all_three = self.qkv(self.norm1(x))
        if self.by_heads:
            q, k, v = (part.transpose(1, 2) for part in all_three.unflatten(-1, (-1, 3, self.size)).unbind(3))
        else:
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in all_three.chunk(3, -1))
        x = x + self.projection(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, size, by_heads=False):
        super().__init__()
        self.token, self.position = nn.Embedding(size.vocabulary, size.channels), nn.Embedding(size.positions, size.channels)
        self.blocks = nn.ModuleList(Block(size, by_heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.channels)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        x, table = self.norm(x), self.token.weight
        if not isinstance(table, DTensor) or not table.placements[-1].is_shard():
            return F.cross_entropy(F.linear(x, table).flatten(0, 1), targets.flatten())
        x = DTensor.from_local(x, table.device_mesh, [Replicate()], run_check=False)  # whose gradient is a sum over the ranks
        return F.cross_entropy(F.linear(x.flatten(0, 1), table), targets.flatten()).to_local()


# The library's names of a block's parameters, and PyTorch's.
NAMES = {"norm1.gain": "norm1.weight", "norm1.shift": "norm1.bias", "attention.qkv": "qkv.weight", "attention.qkv_bias": "qkv.bias",
         "attention.projection": "projection.weight", "attention.projection_bias": "projection.bias", "norm2.gain": "norm2.weight",
         "norm2.shift": "norm2.bias", "mlp.up": "up.weight", "mlp.up_bias": "up.bias", "mlp.down": "down.weight", "mlp.down_bias": "down.bias"}


def begun(size, by_heads=False):
    model, all_of_them = Gpt(size, by_heads), {name: torch.from_numpy(value) for name, value in weights(size).items()}
    whole = {"token": model.token.weight, "position": model.position.weight, "norm.gain": model.norm.weight, "norm.shift": model.norm.bias}
    with torch.no_grad():
        for name, parameter in whole.items():
            parameter.copy_(all_of_them[name])
        for layer, block in enumerate(model.blocks):
            for name, own in NAMES.items():
                parameter, value = block.get_parameter(own), all_of_them["blocks.*." + name][layer]
                if by_heads and own.startswith("qkv"):
                    value = value.transpose(-3, -2)
                parameter.copy_(value.reshape(parameter.shape[::-1]).t() if parameter.dim() == 2 else value.flatten())
    return model


BY_LAYER = {"qkv": ColwiseParallel(), "projection": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}


def split_by_layer(model, mesh):
    parallelize_module(model, mesh, {"token": RowwiseParallel(input_layouts=Replicate())})
    for block in model.blocks:
        parallelize_module(block, mesh, BY_LAYER)


def sharded(model, mesh, parts):
    for part in (*parts, model):
        fully_shard(part, mesh=mesh)
    averaged_over_gloo(model)


class Step:
    def __init__(self, options, rank):
        size, way = SIZES[options.model], options.way
        torch.set_num_threads(options.threads)
        self.by_layer = 2 if way == "both" else options.ranks if way == "tensor" else 1  # ranks that share every layer
        self.by_batch = options.ranks // self.by_layer
        model = begun(size, by_heads=self.by_layer > 1)
        mesh = init_device_mesh("cpu", (self.by_batch, self.by_layer), mesh_dim_names=("batch", "layer")) if way in ("fsdp", "tensor", "both") else None
        if self.by_layer > 1:
            split_by_layer(model, mesh["layer"])
        for block in model.blocks if options.compile and mesh else ():
            block.compile()  # by block, as fully_shard's hooks stand between them
        if way in ("fsdp", "both"):
            sharded(model, mesh["batch"], model.blocks)
        elif way in ("ddp", "zero1"):
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.model = torch.compile(model) if options.compile and not mesh else model
        words = dict(lr=RATE, betas=BETAS, eps=EPSILON, fused=True)
        parameters = list(model.parameters())
        # Tensors and DTensors, of one mesh or of two, are not updated together.
        alike = {}
        for p in parameters:
            alike.setdefault(p.device_mesh if isinstance(p, DTensor) else None, []).append(p)
        self.parameters = list(alike.values())
        self.optimizers = [ZeroRedundancyOptimizer(decayed(some, DECAY), torch.optim.AdamW, **words) if way == "zero1" else
                           torch.optim.AdamW(decayed(some, DECAY), **words) for some in self.parameters]
        self.texts = [torch.from_numpy(text).long().chunk(self.by_batch)[rank // self.by_layer].contiguous() for text in texts(size)]

    def clip(self):
        """As clip_grad_norm_, of parameters that lie differently."""
        if len(self.parameters) == 1:
            norm = nn.utils.clip_grad_norm_(self.parameters[0], CLIP)
            return norm.full_tensor() if isinstance(norm, DTensor) else norm
        norms = [nn.utils.get_total_norm([p.grad for p in some]) for some in self.parameters]
        norm = torch.stack([n.full_tensor() if isinstance(n, DTensor) else n for n in norms]).norm()
        for some in self.parameters:
            nn.utils.clip_grads_with_norm_(some, CLIP, norm)
        return norm

    def step(self):
        """Loss, of all ranks, and the norm of the gradients before it is clipped."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        with loss_parallel() if self.by_layer > 1 else contextlib.nullcontext():
            loss = self.model(*self.texts)
            loss.backward()
        norm = self.clip()
        for optimizer in self.optimizers:
            optimizer.step()
        loss = loss.detach().clone()
        if self.by_batch > 1:
            dist.all_reduce(loss)
            loss /= self.by_batch * self.by_layer
        return loss, norm

    def checked(self, loss, norm):
        yield "loss", loss
        yield "norm", norm
        for which in ("second", "third"):
            yield f"{which}_loss", self.step()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SIZES, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--way", choices=("ddp", "zero1", "fsdp", "tensor", "both"))
    parser.add_argument("--compile", action="store_true")
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
