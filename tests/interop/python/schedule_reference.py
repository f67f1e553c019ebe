"""Learning rates of Python's schedulers; schedule_parity_test.cpp reads and compares them.

Lines: "schedule KIND WARMUP TOTAL MIN STEP GAMMA BASE exact|near COUNT" and COUNT rates, or
"plateau MODE THRESHOLD_MODE FACTOR PATIENCE THRESHOLD COOLDOWN BASE MIN EPS COUNT" and COUNT pairs
of metric and rate. Numbers are hexadecimal, so that none is rounded.
"""
import itertools
import math
import random
import warnings

import torch
from torch.optim import lr_scheduler

warnings.simplefilter("ignore")  # schedulers want optimizer.step() in between
COUNT = 150


def sgd(lr):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)


def chained(scheduler, optimizer):
    rates = []
    for _ in range(COUNT):
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return rates


def closed_form(scheduler):
    rates = []
    for number in range(COUNT):
        scheduler.last_epoch = number
        rates.append(scheduler._get_closed_form_lr()[0])
    return rates


def show(kind, warmup, total, minimum, step, gamma, base, how, rates):
    numbers = [float(minimum).hex(), str(step), float(gamma).hex(), float(base).hex()]
    print("schedule", kind, warmup, total, *numbers, how, len(rates))
    print(*[float(rate).hex() for rate in rates])


def shape(kind, warmup, total):
    """The factor of update number + 1 of a schedule that ends at 0."""

    def factor(number):
        if number < warmup:
            return (number + 1) / warmup
        if kind == "constant":
            return 1.0
        done = min(1.0, (number - warmup) / (total - warmup))
        return 1 - done if kind == "linear" else 0.5 * (1 + math.cos(math.pi * done))

    return factor


def show_schedules():
    for step, gamma, base in itertools.product([1, 7, 30], [0.1, 0.97], [0.1, 3e-4]):
        optimizer = sgd(base)
        scheduler = lr_scheduler.StepLR(optimizer, step, gamma)
        show("step", 0, 0, 0, step, gamma, base, "exact", closed_form(scheduler))
        optimizer = sgd(base)
        scheduler = lr_scheduler.StepLR(optimizer, step, gamma)
        show("step", 0, 0, 0, step, gamma, base, "near", chained(scheduler, optimizer))
    for minimum, base in itertools.product([0, 1e-6, 0.01], [0.1, 3e-2]):
        scheduler = lr_scheduler.CosineAnnealingLR(sgd(base), COUNT, minimum)
        show("cosine", 0, COUNT, minimum, 0, 1, base, "exact", closed_form(scheduler))
    for kind, warmup, base in itertools.product(
        ["constant", "linear", "cosine"], [0, 1, 13], [0.1, 3e-4]
    ):
        optimizer = sgd(base)
        scheduler = lr_scheduler.LambdaLR(optimizer, shape(kind, warmup, 120))
        show(kind, warmup, 120, 0, 0, 1, base, "near", chained(scheduler, optimizer))


def metrics(generator):
    """Falls or rises for a while, then stays; now and then NaN or infinite."""
    value, drift = generator.uniform(-3, 3), generator.choice([-0.1, 0.1])
    for number in range(200):
        if number % 40 < 20:
            value += drift * generator.random()
        seen = value + generator.choice([0, 1e-5, 0.05]) * generator.uniform(-1, 1)
        yield generator.choices([seen, math.nan, math.inf, -math.inf], [97, 2, 0.5, 0.5])[0]


def show_plateaus():
    generator = random.Random(7)
    for mode, threshold_mode, patience, cooldown, minimum in itertools.product(
        ["min", "max"], ["rel", "abs"], [0, 3, 10], [0, 4], [0, 1e-3]
    ):
        for factor, threshold, base, eps in [(0.1, 1e-4, 0.1, 1e-8), (0.7, 0.02, 3e-4, 1e-5)]:
            optimizer = sgd(base)
            scheduler = lr_scheduler.ReduceLROnPlateau(
                optimizer, mode, factor, patience, threshold, threshold_mode, cooldown, minimum, eps
            )
            pairs = []
            for metric in metrics(generator):
                scheduler.step(metric)
                pairs += [metric.hex(), float(optimizer.param_groups[0]["lr"]).hex()]
            print("plateau", mode, threshold_mode, factor.hex(), patience, threshold.hex(), cooldown)
            print(base.hex(), float(minimum).hex(), eps.hex(), len(pairs) // 2)
            print(*pairs)


if __name__ == "__main__":
    show_schedules()
    show_plateaus()
