#!/usr/bin/env python3
"""The training step of tools/bench/gpt_peers_step on PyTorch, on request: tools/bench/gpt_peers asks, by turns with other peers.

    gpt_peers_torch.py --model A|B|C [--threads N] [--compile]
    gpt_peers_torch.py --model A|B|C --ranks N --way ddp|zero1|fsdp [--compile]

Fused attention and the fused AdamW; over several ranks, a process with one thread each, by DistributedDataParallel, as it is or with
ZeroRedundancyOptimizer, or by FSDP2's fully_shard, over gloo.
Prints what torch_peer.py says. It needs PyTorch 2.6 or later.
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from gpt_peers_model import BETAS, CLIP, DECAY, EPSILON, RATE, SIZES, texts, weights
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch_peer import averaged_over_gloo, decayed, run


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        c = size.channels
        self.heads = size.heads
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.projection = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.projection(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.token, self.position = nn.Embedding(size.vocabulary, size.channels), nn.Embedding(size.positions, size.channels)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.channels)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# The library's names of a block's parameters, and PyTorch's.
NAMES = {"norm1.gain": "norm1.weight", "norm1.shift": "norm1.bias", "attention.qkv": "qkv.weight", "attention.qkv_bias": "qkv.bias",
         "attention.projection": "projection.weight", "attention.projection_bias": "projection.bias", "norm2.gain": "norm2.weight",
         "norm2.shift": "norm2.bias", "mlp.up": "up.weight", "mlp.up_bias": "up.bias", "mlp.down": "down.weight", "mlp.down_bias": "down.bias"}


def begun(size):
    model, all_of_them = Gpt(size), {name: torch.from_numpy(value) for name, value in weights(size).items()}
    whole = {"token": model.token.weight, "position": model.position.weight, "norm.gain": model.norm.weight, "norm.shift": model.norm.bias}
    with torch.no_grad():
        for name, parameter in whole.items():
            parameter.copy_(all_of_them[name])
        for layer, block in enumerate(model.blocks):
            for name, own in NAMES.items():
                parameter, value = block.get_parameter(own), all_of_them["blocks.*." + name][layer]
                parameter.copy_(value.reshape(parameter.shape[::-1]).t() if parameter.dim() == 2 else value.flatten())
    return model


class Step:
    def __init__(self, options, rank):
        size = SIZES[options.model]
        torch.set_num_threads(options.threads)
        model = begun(size)
        if options.way == "fsdp":
            mesh = init_device_mesh("cpu", (options.ranks,))
            for block in model.blocks if options.compile else ():
                block.compile()  # by block, as its hooks stand between them
            for part in (*model.blocks, model):
                fully_shard(part, mesh=mesh)
            averaged_over_gloo(model)
        elif options.way:
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.parameters = list(model.parameters())
        self.model = torch.compile(model) if options.compile and options.way != "fsdp" else model
        words = dict(lr=RATE, betas=BETAS, eps=EPSILON, fused=True)
        if options.way == "zero1":
            self.optimizer = ZeroRedundancyOptimizer(decayed(self.parameters, DECAY), torch.optim.AdamW, **words)
        else:
            self.optimizer = torch.optim.AdamW(decayed(self.parameters, DECAY), **words)
        self.texts = [torch.from_numpy(text).long().chunk(options.ranks)[rank].contiguous() for text in texts(size)]
        self.ranks = options.ranks

    def step(self):
        """Loss, of all ranks, and the norm of the gradients before it is clipped."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(*self.texts)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        loss = loss.detach().clone()
        if self.ranks > 1:
            dist.all_reduce(loss)
        return loss / self.ranks, norm.full_tensor() if isinstance(norm, DTensor) else norm

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
    parser.add_argument("--way", choices=("ddp", "zero1", "fsdp"))
    parser.add_argument("--compile", action="store_true")
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
