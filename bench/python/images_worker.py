"""Python's side of the images benchmark: trains one model for a moment and prints its speed.

Usage: images_worker.py CASE

The case is JSON: recipe, sizes, batch, block (steps that are timed together), device, mode ("eager"
or a mode of torch.compile), trainable (how many parameters there must be; null: not checked). The
case "device" prints what there is to compute on.
"""
import json
import statistics
import sys
import time

import torch

import images_models as models

NUM_WARM_STEPS = 20
NUM_BLOCKS = 3
NUM_BATCHES = 8


def facts():
    has_gpu = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if has_gpu else "cpu",
        "has_gpu": has_gpu,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }


class Training:
    def __init__(self, case):
        self.case = case
        recipe = models.RECIPES[case["recipe"]]
        self.model = models.make(case["recipe"], case["sizes"]).to(case["device"])
        self.parameters = list(self.model.parameters())
        trained = [p for p in self.parameters if p.requires_grad]
        count = sum(p.numel() for p in trained)
        assert case["trainable"] in (None, count), f"{count} trainable parameters"
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0, fused=True)
        self.warms_averages = recipe["warms_averages"]
        self.averages = [
            (decay, [p.detach().clone() for p in self.parameters]) for decay in recipe["averages"]
        ]
        self.num_steps = 0
        self.loss_of_model = recipe["loss"]
        self.loss = self.compute_loss
        if case["mode"] != "eager":
            # Without a GPU only the tracing: code for the CPU takes minutes to compile.
            how = {"mode": case["mode"]} if case["device"] == "cuda" else {"backend": "aot_eager"}
            self.loss = torch.compile(self.compute_loss, dynamic=False, **how)

    def compute_loss(self, pixels, labels):
        images = pixels.float() / 127.5 - 1
        is_dropped = torch.rand(len(labels), device=labels.device) < 0.1
        labels = labels.masked_fill(is_dropped, self.case["sizes"]["classes"])
        noise = torch.randn_like(images)
        with torch.autocast(images.device.type, torch.bfloat16):
            return self.loss_of_model(self.model, images, noise, labels)

    def step(self, pixels, labels):
        torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(pixels, labels)
        loss.backward()
        self.optimizer.step()
        self.num_steps += 1
        for decay, average in self.averages:
            if self.warms_averages:
                decay = min(decay, (1 + self.num_steps) / (10 + self.num_steps))
            torch._foreach_lerp_(average, [p.detach() for p in self.parameters], 1 - decay)
        return loss


def make_batches(case):
    size, batch = case["sizes"]["size"], case["batch"]
    shape = (NUM_BATCHES, batch, case["sizes"]["channels"], size, size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, device=case["device"])
    labels = torch.randint(0, case["sizes"]["classes"], shape[:2], device=case["device"])
    return list(zip(pixels, labels))


def run(case):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    models.check()
    training = Training(case)
    batches = make_batches(case)

    def seconds(num_steps):
        begin = time.perf_counter()
        for i in range(num_steps):
            loss = training.step(*batches[i % NUM_BATCHES])
        if case["device"] == "cuda":
            torch.cuda.synchronize()
        assert loss.isfinite()
        return time.perf_counter() - begin

    warm_seconds = seconds(NUM_WARM_STEPS)
    block = case["block"]
    rates = [block * case["batch"] / seconds(block) for _ in range(NUM_BLOCKS)]
    return {"rate": statistics.median(rates), "rates": rates, "warm_s": warm_seconds}


if __name__ == "__main__":
    print(json.dumps(facts() if sys.argv[1] == "device" else run(json.loads(sys.argv[1]))))
