#!/usr/bin/env python3
"""The updates of tools/bench/optimizer_step on PyTorch's fused optimizers, on request: tools/bench/optimizer asks, by turns with other peers.

    optimizer_torch.py --optimizer adamw|momentum|sgd [--threads N]

One process with so many threads. Of a step only the call of the optimizer counts. Prints what torch_peer.py says.
"""
import argparse
import time

import torch
from torch_peer import number, run

WIDTH, LAYERS, ROWS, RATE = 1024, 24, 8, 1e-4
OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01, fused=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=RATE, momentum=0.9, fused=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=RATE, fused=True),
}


class Step:
    def __init__(self, options, _):
        torch.set_num_threads(options.threads)
        size = WIDTH * WIDTH
        self.weights = [torch.nn.Parameter(number(0, (WIDTH, WIDTH), layer * size, 0, 0.02)) for layer in range(LAYERS)]
        self.x = number(1, (ROWS, WIDTH))
        self.optimizer = OPTIMIZERS[options.optimizer](self.weights)

    def step(self):
        self.optimizer.zero_grad(set_to_none=False)
        x = self.x
        for weight in self.weights:
            x = x + x @ weight
        loss = x.square().mean()
        loss.backward()
        begin = time.perf_counter()
        self.optimizer.step()
        self.took = time.perf_counter() - begin
        return (loss.detach(),)

    def checked(self, loss):
        yield "loss", loss
        for which in ("second", "third"):
            yield f"{which}_loss", self.step()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.set_defaults(ranks=1)
    run(Step, parser.parse_args())


if __name__ == "__main__":
    main()
