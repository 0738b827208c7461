#!/usr/bin/env python3
"""The step of tools/bench/pipeline_step on PyTorch, on request: torch.distributed.pipelining, a process per stage, over gloo, one thread each.

    pipeline_torch.py gpipe|one_forward_one_backward --micro-batches M --ranks N

Modules, numbers and words are those of pipeline_model.hpp and pipeline_step.cpp. It needs PyTorch 2.6 or later.
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from torch_peer import number, run

ROWS, WIDTH, INNER, DEPTH = 128, 256, 1024, 8

# The library's names and shapes of one layer, the spread of its numbers around 0, and the parameter here.
NUMBERS = [
    ("up", (WIDTH, INNER), 0.1, "up.weight"),
    ("up_bias", (INNER,), 0.1, "up.bias"),
    ("down", (INNER, WIDTH), 0.05, "down.weight"),
    ("down_bias", (WIDTH,), 0.1, "down.bias"),
]
INPUT, TARGET = 4, 5
SCHEDULES = {"gpipe": ScheduleGPipe, "one_forward_one_backward": Schedule1F1B}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x), approximate="tanh"))


class Step:
    def __init__(self, options, rank):
        self.ranks, self.micro_batches = options.ranks, options.micro_batches
        self.first, self.last = rank == 0, rank == options.ranks - 1
        own = DEPTH // options.ranks
        self.layers = nn.Sequential(*(Layer() for _ in range(own)))
        with torch.no_grad():
            for index, layer in enumerate(self.layers):
                for which, (_, shape, spread, name) in enumerate(NUMBERS):
                    value = number(which, shape, (rank * own + index) * torch.Size(shape).numel(), 0, spread)
                    layer.get_parameter(name).copy_(value.t() if value.dim() == 2 else value)
        self.x, self.target = (number(which, (options.micro_batches * ROWS, WIDTH)) for which in (INPUT, TARGET))
        if options.ranks > 1:
            stage = PipelineStage(self.layers, rank, options.ranks, torch.device("cpu"))
            self.schedule = SCHEDULES[options.schedule](stage, options.micro_batches, loss_fn=F.mse_loss)

    def losses(self):
        """Of all micro-batches, on the last stage; gradients are of their mean."""
        losses = []
        if self.ranks > 1:
            self.schedule.step(*([self.x] if self.first else []), **(dict(target=self.target, losses=losses) if self.last else {}))
            return losses
        for x, target in zip(self.x.chunk(self.micro_batches), self.target.chunk(self.micro_batches)):
            loss = F.mse_loss(self.layers(x), target)
            (loss / self.micro_batches).backward()
            losses.append(loss.detach())
        return losses

    def added(self, value):
        """The sum over all ranks."""
        if self.ranks > 1:
            dist.all_reduce(value)
        return value

    def step(self):
        self.layers.zero_grad(set_to_none=True)
        losses = self.losses()
        squares = sum(n.square() for n in torch._foreach_norm([p.grad for p in self.layers.parameters()]))
        sums = self.added(torch.stack([torch.stack(losses).mean() if losses else torch.zeros(()), squares]))
        return sums[0], sums[1].sqrt()

    def checked(self, loss, norm):
        yield "loss", loss
        yield "norm", norm
        for name, _, _, own in NUMBERS:
            yield "layers.*." + name, self.added(sum(layer.get_parameter(own).grad.double().square().sum() for layer in self.layers)).sqrt()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schedule", choices=SCHEDULES)
    parser.add_argument("--micro-batches", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
