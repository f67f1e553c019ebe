"""Prints torch.utils.data.DistributedSampler's indices: one line per case of the grid.

The cases come on standard input: samples world rank epoch seed shuffle drop_last.
"""
import sys

from torch.utils.data.distributed import DistributedSampler

for line in sys.stdin:
    samples, world, rank, epoch, seed, shuffle, drop_last = map(int, line.split())
    sampler = DistributedSampler(
        range(samples), world, rank, shuffle=bool(shuffle), seed=seed, drop_last=bool(drop_last)
    )
    sampler.set_epoch(epoch)
    print(*sampler)
