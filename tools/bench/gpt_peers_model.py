"""The sizes of tools/bench/gpt_model.hpp and the numbers of gpt_peers_step.cpp, for the peers in Python."""
from dataclasses import dataclass

import numpy as np
from peer_numbers import number

RATE, BETAS, DECAY, EPSILON, CLIP = 1e-4, (0.9, 0.99), 0.1, 1e-8, 1.0


@dataclass(frozen=True)
class Size:
    layers: int
    channels: int
    heads: int
    context: int
    positions: int
    vocabulary: int
    batch: int


SIZES = {
    "A": Size(layers=12, channels=768, heads=12, context=64, positions=1024, vocabulary=50257, batch=4),
    "B": Size(layers=6, channels=384, heads=6, context=256, positions=256, vocabulary=50257, batch=8),
    "C": Size(layers=6, channels=384, heads=6, context=256, positions=256, vocabulary=256, batch=8),
}


def table(size):
    """The shape, mean and spread of every parameter by the library's name, those of blocks with the layers in front; products have their inputs first."""
    c, heads = size.channels, (size.heads, size.channels // size.heads)
    block = {
        "norm1.gain": ((c,), 1, 0.1),
        "norm1.shift": ((c,), 0, 0.1),
        "attention.qkv": ((c, 3, *heads), 0, 0.03),
        "attention.qkv_bias": ((3, *heads), 0, 0.03),
        "attention.projection": ((*heads, c), 0, 0.01),
        "attention.projection_bias": ((c,), 0, 0.03),
        "norm2.gain": ((c,), 1, 0.1),
        "norm2.shift": ((c,), 0, 0.1),
        "mlp.up": ((c, 4 * c), 0, 0.03),
        "mlp.up_bias": ((4 * c,), 0, 0.03),
        "mlp.down": ((4 * c, c), 0, 0.01),
        "mlp.down_bias": ((c,), 0, 0.03),
    }
    return {
        "token": ((size.vocabulary, c), 0, 0.03),
        "position": ((size.positions, c), 0, 0.03),
        **{f"blocks.*.{name}": ((size.layers, *shape), mean, spread) for name, (shape, mean, spread) in block.items()},
        "norm.gain": ((c,), 1, 0.1),
        "norm.shift": ((c,), 0, 0.1),
    }


def weights(size):
    return {name: number(which, shape, mean=mean, spread=spread) for which, (name, (shape, mean, spread)) in enumerate(table(size).items())}


def texts(size):
    """Tokens and targets, [batch, context]."""
    parts = (number(len(table(size)) + which, (size.batch, size.context), mean=0.5, spread=0.5) for which in (0, 1))
    return [np.minimum(size.vocabulary - 1, (part * np.float32(size.vocabulary)).astype(np.int32)) for part in parts]
