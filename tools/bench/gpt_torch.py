#!/usr/bin/env python3
"""examples/gpt.cpp on PyTorch, on the CPU: the same model, text, schedule and optimizer. Prints tokens a second and the validation loss.

    gpt_torch.py TEXT [--steps 2000] [--threads 1] [--seed 1] [--compile]

Bytes as tokens, no biases, no dropout, tied head, fused attention and AdamW. Exit codes: 0 done; 2 usage; 69 there is no PyTorch.
"""
import argparse
import math
import sys
import time
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("this python has no PyTorch; PYTHON names another")
    sys.exit(69)

BYTES, CONTEXT, CHANNELS, HEADS, LAYERS, BATCH = 256, 64, 128, 4, 4, 12


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def norm():
    return nn.LayerNorm(CHANNELS, bias=False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = norm(), norm()
        self.qkv, self.projection = linear(CHANNELS, 3 * CHANNELS), linear(CHANNELS, CHANNELS)
        self.up, self.down = linear(CHANNELS, 4 * CHANNELS), linear(4 * CHANNELS, CHANNELS)

    def forward(self, x):
        batch, context, _ = x.shape
        q, k, v = (part.view(batch, context, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(CHANNELS, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, context, CHANNELS))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(BYTES, CHANNELS), nn.Embedding(CONTEXT, CHANNELS)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), norm()
        for name, p in self.named_parameters():
            if p.dim() > 1:
                residual = name.endswith(("projection.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if residual else 0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.place.weight
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.linear(self.norm(x), self.token.weight).view(-1, BYTES), targets.reshape(-1))


def rate(step, steps, peak=1e-3, warmup=100):
    warmup = min(warmup, steps // 2)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    return peak / 10 + 0.9 * peak * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    text = torch.frombuffer(bytearray(Path(options.text).read_bytes()), dtype=torch.uint8).long()
    split = text.numel() * 9 // 10
    training, validation = text[:split], text[split:]
    model = Gpt()
    matrices, vectors = ([p for p in model.parameters() if (p.dim() > 1) == matrix] for matrix in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    run = torch.compile(model) if options.compile else model

    fastest, begun, used = math.inf, time.perf_counter(), time.process_time()
    for step in range(options.steps):
        before = time.perf_counter()
        first = torch.randint(training.numel() - CONTEXT, (BATCH,))
        windows = torch.stack([training[i : i + CONTEXT + 1] for i in first.tolist()])
        loss = run(windows[:, :-1], windows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, options.steps)
        optimizer.step()
        optimizer.zero_grad()
        fastest = min(fastest, time.perf_counter() - before)
    took, used = time.perf_counter() - begun, time.process_time() - used
    tokens = BATCH * CONTEXT
    print(f"PyTorch {torch.__version__}, {options.threads} threads: {options.steps * tokens / took:.0f} tokens/s, {tokens / fastest:.0f} in the fastest step")
    print(f"{options.steps * tokens / used:.0f} tokens in a second of the processors' time")

    windows = validation[: (validation.numel() - 1) // CONTEXT * CONTEXT + 1]
    with torch.no_grad():
        losses = [model(x.view(-1, CONTEXT), y.view(-1, CONTEXT)) for x, y in zip(windows[:-1].split(CONTEXT), windows[1:].split(CONTEXT))]
    print(f"validation loss {sum(losses).item() / len(losses):.4f} nats per byte, over {len(losses)} windows")


if __name__ == "__main__":
    main()
