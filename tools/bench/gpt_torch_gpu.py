#!/usr/bin/env python3
"""Training steps of GPT-2 (124M) on PyTorch, compiled, in bf16 with float masters, on one GPU: prints `version V`, `tokens_per_second X` and `loss Y`.

    gpt_torch_gpu.py [--batch 32] [--context 1024] [--steps 20] [--attention flash | cudnn] [--eager]

The same architecture, loss and optimizer as gpt_step_gpu.cpp: tied head over 50304 rows, no dropout, AdamW over all parameters, gradient norm
clipped at 1. Attention is PyTorch's fused one (scaled_dot_product_attention), by default of the kind that it chooses itself; the optimizer is fused,
too. Exit codes: 0 done; 2 usage; 69 there is no PyTorch, or it has no such attention.
"""
import argparse
import contextlib
import sys
import time

UNAVAILABLE = 69
try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("this python has no PyTorch; PYTHON names another")
    sys.exit(UNAVAILABLE)

CHANNELS, HEADS, LAYERS, CLASSES, ROWS = 768, 12, 12, 50257, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
        self.qkv, self.projection = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS)
        self.up, self.down = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x):
        batch, context, _ = x.shape
        q, k, v = (part.view(batch, context, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(CHANNELS, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, context, CHANNELS))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, context):
        super().__init__()
        self.token, self.place = nn.Embedding(ROWS, CHANNELS), nn.Embedding(context, CHANNELS)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(CHANNELS)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.view(-1, ROWS), targets.view(-1))


def attention(kind):
    """A context in which attention is of one kind only, or of any."""
    if kind is None:
        return contextlib.nullcontext()
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel({"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[kind])
    except (ImportError, AttributeError):
        print(f"PyTorch {torch.__version__} cannot be told to take {kind} attention")
        sys.exit(UNAVAILABLE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--attention", choices=["flash", "cudnn"])
    parser.add_argument("--eager", action="store_true", help="not compiled")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt2(options.context).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    run = model if options.eager else torch.compile(model)
    tokens, targets = (torch.randint(CLASSES, (options.batch, options.context), device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    with attention(options.attention):
        for _ in range(5):
            loss = step()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(options.steps):
            loss = step()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    print(f"version {torch.__version__}")
    print(f"tokens_per_second {options.batch * options.context * options.steps / seconds:.0f}")
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
