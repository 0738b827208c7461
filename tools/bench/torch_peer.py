"""A peer on PyTorch that takes steps on request, a process per rank with one thread each, over gloo."""
import os
import sys
import tempfile
import time

import peer_numbers
import torch
import torch.distributed as dist


def number(*words, **more):
    return torch.from_numpy(peer_numbers.number(*words, **more))


def averaged_over_gloo(model):
    """Has fully_shard divide the gradients' sums: some versions ask gloo for an average, which gives a sum."""
    for part in model.modules():
        if hasattr(part, "set_force_sum_reduction_for_comms"):
            part.set_force_sum_reduction_for_comms(True)
    return model


def decayed(parameters, decay):
    """What begins as ones or zeros, gains, shifts and biases, is not decayed by the library's AdamW."""
    parameters = list(parameters)
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": decay}, {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]


def serve(make, options, rank, requests):
    """`requests()` gives the next number of steps, 0 behind the last."""
    peer = make(options, rank)
    result = peer.step()
    for name, value in peer.checked(*result):
        if rank == 0:
            print(f"{name} {value.item():.9g}")
    if rank == 0:
        print("ready", flush=True)

    def together():
        if options.ranks > 1:
            dist.barrier()

    while steps := requests():
        fastest = 1e9
        for i in range(-1, steps):
            together()
            begin = time.perf_counter()
            peer.step()
            together()
            took = getattr(peer, "took", time.perf_counter() - begin)  # a peer of whose step a part counts says so itself
            if i >= 0:
                fastest = min(fastest, took)
        if rank == 0:
            print(f"{fastest * 1e3:.4f}", flush=True)


def rank_of(rank, make, options, store, requests):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=options.ranks)
    serve(make, options, rank, requests[rank].get)
    dist.destroy_process_group()


def lines():
    for line in sys.stdin:
        yield int(line)


def run(make, options):
    """`make(options, rank)` is a rank's peer: step() gives what checked(...) takes, which gives names and numbers to be compared."""
    torch.set_num_threads(1)
    if options.ranks == 1:
        given = lines()
        return serve(make, options, 0, lambda: next(given, 0))
    context = torch.multiprocessing.get_context("spawn")
    requests = [context.SimpleQueue() for _ in range(options.ranks)]
    with tempfile.TemporaryDirectory() as folder:
        ranks = torch.multiprocessing.spawn(rank_of, (make, options, folder + "/store", requests), options.ranks, join=False)
        for steps in lines():
            for queue in requests:
                queue.put(steps)
        for queue in requests:
            queue.put(0)
        while not ranks.join():
            pass
