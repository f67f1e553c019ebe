"""A plain Python DDP training, as people have it: nothing in it knows Lockstep.

    ddp_script.py [--fail RANK] [--local_rank N]
"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.nn  # Before init_process_group(): imported later by DDP, it would keep the group alive.
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail", type=int, default=-1)
    parser.add_argument("--exit", type=int, default=-1)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    assert rank == int(os.environ["RANK"])
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(3):
        model(torch.randn(8, 4)).sum().backward()
    if rank == args.fail:
        raise RuntimeError("the data set is not there")
    if rank == args.exit:
        sys.exit(7)
    if args.fail >= 0 or args.exit >= 0:
        dist.barrier()
    print(f"rank {rank} of {dist.get_world_size()} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
