"""What the peers of scribble and protein share: their options, a training step and its timing."""
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
    options = argparse.ArgumentParser(
        description=usage, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--precision", choices=["fp16", "bf16", "tf32", "fp32"], default=precision)
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
        torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
        self.scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
        self.compute_loss = compute_loss
        if options.compile:
            # Without a GPU only the tracing: code for the CPU takes minutes to compile.
            how = {} if options.device == "cuda" else {"backend": "aot_eager"}
            self.compute_loss = torch.compile(compute_loss, dynamic=False, **how)

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

    def peak_bytes(self):
        if self.options.device == "cuda":
            return torch.cuda.max_memory_allocated()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def report(self, batches):
        """Prints one line of JSON; rate is samples per second."""
        options = self.options
        warm_seconds = self.seconds(batches, options.warm)
        block = options.block
        rates = [block * options.batch / self.seconds(batches, block) for _ in range(options.blocks)]
        has_gpu = options.device == "cuda"
        facts = {
            "rate": statistics.median(rates),
            "rates": rates,
            "peak_bytes": self.peak_bytes(),
            "warm_s": warm_seconds,
            "trainable": sum(p.numel() for p in self.model.parameters()),
            "options": vars(options),
            "device": torch.cuda.get_device_name() if has_gpu else "cpu",
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
        print(json.dumps(facts))


def prepare(options):
    torch.manual_seed(0)
    if options.threads > 0:
        torch.set_num_threads(options.threads)
