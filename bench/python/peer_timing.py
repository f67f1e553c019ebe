"""What the peers share: their options, a training step or a forward alone, and their timing."""
import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

import torch

REFERENCES = Path(__file__).resolve().parents[2] / "tests" / "interop" / "python"
sys.path.insert(0, str(REFERENCES))

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
NUM_BATCHES = 4


def parser(usage, precision):
    options = forward_parser(usage)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--precision", choices=["fp16", "bf16", "fp32"], default=precision)
    return options


def forward_parser(usage):
    options = argparse.ArgumentParser(
        description=usage, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options.add_argument("--compile", action="store_true")
    options.add_argument("--warm", type=int, default=10, help="steps before any is timed")
    options.add_argument("--block", type=int, default=20, help="steps that are timed together")
    options.add_argument("--blocks", type=int, default=3)
    options.add_argument("--threads", type=int, default=0, help="on the CPU; 0: torch's choice")
    return options


class Training:
    def __init__(self, options, model, optimizer, compute_loss):
        """compute_loss: a batch (tensors) to a scalar. Gradients are clipped by max_norm if set."""
        self.options = options
        self.model = model
        self.optimizer = optimizer
        self.max_norm = None
        self.scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
        self.compute_loss = compute_loss
        if options.compile:
            self.compute_loss = compiled(options, compute_loss)

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        kind = TYPES.get(self.options.precision)
        with torch.autocast(self.options.device, kind, enabled=kind is not None):
            loss = self.compute_loss(*batch)
        self.scaler.scale(loss).backward()
        if self.max_norm is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def seconds(self, batches, num_steps):
        begin = time.perf_counter()
        for i in range(num_steps):
            loss = self.step(batches[i % len(batches)])
        if self.options.device == "cuda":
            torch.cuda.synchronize()
        assert loss.isfinite(), loss
        return time.perf_counter() - begin

    def report(self, batches):
        """Prints one line of JSON; rate is samples per second."""
        options = self.options
        warm_seconds = self.seconds(batches, options.warm)
        block = options.block
        rates = [block * options.batch / self.seconds(batches, block) for _ in range(options.blocks)]
        facts = {
            "rate": statistics.median(rates),
            "rates": rates,
            "warm_s": warm_seconds,
            "trainable": sum(p.numel() for p in self.model.parameters()),
        }
        print_facts(options, facts)


def compiled(options, function):
    # Without a GPU only the tracing: code for the CPU takes minutes to compile.
    how = {} if options.device == "cuda" else {"backend": "aot_eager"}
    return torch.compile(function, dynamic=False, **how)


def peak_bytes(options):
    if options.device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def print_facts(options, facts):
    more = {
        "peak_bytes": peak_bytes(options),
        "options": vars(options),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    print(json.dumps({**facts, **more}), flush=True)


def forward_seconds(options, forward, count):
    """Of forwards that follow each other; on a GPU between events, as the GPU saw them."""
    if options.device == "cpu":
        begin = time.perf_counter()
        for _ in range(count):
            forward()
        return time.perf_counter() - begin
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    for _ in range(count):
        forward()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / 1000


@torch.inference_mode()
def report_forward(options, forward, num_items, facts):
    """Prints one line of JSON; rate is items per second, ms is of one forward."""
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    warm_begin = time.perf_counter()
    forward_seconds(options, forward, options.warm)
    warm_seconds = time.perf_counter() - warm_begin
    block = options.block
    seconds = [forward_seconds(options, forward, block) / block for _ in range(options.blocks)]
    more = {
        "rate": num_items / statistics.median(seconds),
        "rates": [num_items / each for each in seconds],
        "ms": 1000 * statistics.median(seconds),
        "warm_s": warm_seconds,
    }
    print_facts(options, {**facts, **more})


def prepare(options):
    torch.manual_seed(0)
    if options.threads > 0:
        torch.set_num_threads(options.threads)
