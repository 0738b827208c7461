#!/usr/bin/env python3
"""The training step of tools/bench/zero_model.hpp on PyTorch's data parallelism and its sharded forms, on request: tools/bench/zero asks, by turns
with other peers. A process per rank with one thread each, over gloo, and the fused AdamW.

    zero_torch.py --way ddp|zero1|kept|fsdp [--ranks 2]

`ddp` is DistributedDataParallel, `zero1` that with ZeroRedundancyOptimizer, `kept` FSDP2's fully_shard with reshard_after_forward=False, which keeps
what it has gathered until backward, `fsdp` fully_shard as it comes: ZeRO's third stage. Prints what torch_peer.py says.
"""
import argparse

import torch
import torch.distributed as dist
from layer_torch import INPUT, NUMBERS, TARGET, CHANNELS, CONTEXT, Block, here
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch_peer import averaged_over_gloo, decayed, number, run

LAYERS, RATE = 4, 1e-4


class Step:
    def __init__(self, options, rank):
        model = nn.Sequential(*(Block() for _ in range(LAYERS)))
        with torch.no_grad():
            for index, block in enumerate(model):
                for which, (name, shape, mean, spread, own) in enumerate(NUMBERS):
                    first = index * torch.Size(shape).numel()
                    block.get_parameter(own).copy_(here(name, number(which, shape, first, mean, spread)))
        if options.way in ("fsdp", "kept"):
            mesh = init_device_mesh("cpu", (options.ranks,))
            for part in (*model, model):
                fully_shard(part, mesh=mesh, reshard_after_forward=options.way == "fsdp")
            self.model = averaged_over_gloo(model)
        else:
            self.model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        groups, words = decayed(self.model.parameters(), 0.1), dict(lr=RATE, betas=(0.9, 0.99), fused=True)
        if options.way == "zero1":
            self.optimizer = ZeroRedundancyOptimizer(groups, torch.optim.AdamW, **words)
        else:
            self.optimizer = torch.optim.AdamW(groups, **words)
        self.x, self.target = (number(which, (options.ranks, CONTEXT, CHANNELS))[rank : rank + 1].contiguous() for which in (INPUT, TARGET))

    def step(self):
        """Loss, of all ranks, and the norm of the gradients before it is clipped to 1."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.model(self.x) - self.target).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1)
        self.optimizer.step()
        loss = loss.detach().clone()
        dist.all_reduce(loss)
        return loss / dist.get_world_size(), norm.full_tensor() if isinstance(norm, DTensor) else norm

    def checked(self, loss, norm):
        yield "loss", loss
        yield "norm", norm
        for which in ("second", "third"):
            loss, norm = self.step()
            yield f"{which}_loss", loss
            yield f"{which}_norm", norm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=("ddp", "zero1", "kept", "fsdp"), required=True)
    parser.add_argument("--ranks", type=int, default=2)
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
