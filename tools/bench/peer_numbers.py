"""The numbers that peers begin with, as numbers.hpp makes them."""
import numpy as np


def number(which, shape, first=0, mean=0.0, spread=1.0):
    """Elements first, first + 1, ... of a tensor."""
    count = int(np.prod(shape, dtype=np.int64))
    x = (np.arange(first, first + count) + which * 0x9E3779B9).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    uniform = (x / 2147483648.0 - 1).astype(np.float32)
    return (np.float32(mean) + np.float32(spread) * uniform).reshape(shape)
