#!/usr/bin/env python3
"""The training step of tools/bench/gpt_peers_step on JAX, on request: tools/bench/gpt_peers asks, by turns with other peers.

    taskset -c 0 gpt_peers_jax.py --model A|B|C

One program for the compiler, which is given the memory of what it replaces; it uses as many threads as the process has cores. Prints what
torch_peer.py says.
"""
import argparse
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
from gpt_peers_model import BETAS, CLIP, DECAY, EPSILON, RATE, SIZES, texts, weights


def layer_norm(x, gain, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.square(x - mean).mean(-1, keepdims=True) + 1e-5) * gain + shift


def block(x, w, context):
    """`x` has a row for each token: of what has three dimensions products are slower."""
    heads, size, channels = w["attention.projection"].shape
    qkv = layer_norm(x, w["norm1.gain"], w["norm1.shift"]) @ w["attention.qkv"].reshape(channels, -1) + w["attention.qkv_bias"].reshape(-1)
    q, k, v = jnp.moveaxis(qkv.reshape(-1, context, 3, heads, size), 2, 0)
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    x = x + attended @ w["attention.projection"].reshape(channels, channels) + w["attention.projection_bias"]
    hidden = jax.nn.gelu(layer_norm(x, w["norm2.gain"], w["norm2.shift"]) @ w["mlp.up"] + w["mlp.up_bias"], approximate=True)
    return x + hidden @ w["mlp.down"] + w["mlp.down_bias"]


def loss_of(w, tokens, targets):
    (vocabulary, channels), context = w["token"].shape, tokens.shape[1]
    x = (w["token"][tokens] + w["position"][:context]).reshape(-1, channels)
    for layer in w["blocks"]:
        x = block(x, layer, context)
    logits = layer_norm(x, w["norm.gain"], w["norm.shift"]) @ w["token"].T
    return (jax.nn.logsumexp(logits, -1) - (logits * jax.nn.one_hot(targets.reshape(-1), vocabulary)).sum(-1)).mean()


@partial(jax.jit, donate_argnums=(0, 1, 2))
def train(w, means, squares, step, tokens, targets):
    """What AdamW makes of parameters and moments, loss, and the norm of the gradients before it is clipped."""
    loss, gradients = jax.value_and_grad(loss_of)(w, tokens, targets)
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda g: g * jnp.minimum(1, CLIP / norm), gradients)
    means = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, means, gradients)
    squares = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, squares, gradients)
    first, second = 1 - BETAS[0] ** step, 1 - BETAS[1] ** step

    def updated(path, p, m, v):
        """Gains, shifts and biases are not decayed."""
        decay = 0 if path[-1].key.endswith(("gain", "shift", "bias")) else DECAY
        return p - RATE * (m / first / (jnp.sqrt(v / second) + EPSILON) + decay * p)

    return jax.tree_util.tree_map_with_path(updated, w, means, squares), means, squares, loss, norm


class Step:
    def __init__(self, size):
        stacked = weights(size)
        w = {name: jnp.asarray(value) for name, value in stacked.items() if not name.startswith("blocks")}
        w["blocks"] = [{name.removeprefix("blocks.*."): jnp.asarray(value[layer]) for name, value in stacked.items() if name.startswith("blocks")}
                       for layer in range(size.layers)]
        self.state = (w, *(jax.tree.map(jnp.zeros_like, w) for _ in range(2)))
        self.texts = [jnp.asarray(text) for text in texts(size)]
        self.steps = 0

    def step(self):
        self.steps += 1
        *self.state, loss, norm = train(*self.state, jnp.float32(self.steps), *self.texts)
        jax.block_until_ready(self.state)
        return float(loss), float(norm)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SIZES, required=True)
    peer = Step(SIZES[parser.parse_args().model])
    loss, norm = peer.step()
    print(f"loss {loss:.9g}\nnorm {norm:.9g}")
    for which in ("second", "third"):
        print(f"{which}_loss {peer.step()[0]:.9g}")
    print("ready", flush=True)
    for line in sys.stdin:
        fastest = 1e9
        for i in range(-1, int(line)):
            begin = time.perf_counter()
            peer.step()
            if i >= 0:
                fastest = min(fastest, time.perf_counter() - begin)
        print(f"{fastest * 1e3:.4f}", flush=True)


if __name__ == "__main__":
    main()
