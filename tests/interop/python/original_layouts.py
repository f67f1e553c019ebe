"""The checkpoints of the five original projects: made as they make them, and ours read as they read them."""
import argparse
import sys

import torch

# Keys of the originals; ours add "lockstep".
KEYS = {
    "jit": {"epoch", "model_state_dict", "optimizer_state_dict", "scheduler_state_dict", "loss"},
    "jit_images": {"model", "optimizer", "epoch", "args", "model_ema1", "model_ema2"},
    "dit": {"model", "ema"},
    "scribble": {"epoch", "state_dict", "best_pred", "optimizer"},
    "protein": {"epoch", "encoder_state_dict", "decoder_state_dict", "optimizer_state_dict",
                "scheduler_state_dict", "loss", "train_losses", "val_losses"},
    "atlas": {"epoch", "global_step", "model_state_dict", "optimizer_state_dict", "scheduler_state_dict",
              "scaler_state_dict", "best_val_loss"},
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 6)
        self.last = torch.nn.Linear(6, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def load_model(net, file, layout):
    """As the original's own code does it."""
    if layout == "protein":
        net.first.load_state_dict(file["encoder_state_dict"])
        net.last.load_state_dict(file["decoder_state_dict"])
    else:
        key = {"scribble": "state_dict", "dit": "model", "jit_images": "model"}.get(layout, "model_state_dict")
        net.load_state_dict(file[key])


def check_schedule(optimizer, state, steps):
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    scheduler.load_state_dict(state)
    assert scheduler.last_epoch == steps and scheduler.base_lrs == [0.01], vars(scheduler)
    assert scheduler.get_last_lr() == [0.01]
    optimizer.step()
    scheduler.step()
    assert scheduler.last_epoch == steps + 1


def check_averages(file, layout):
    weights = file["model"]
    if layout == "dit":
        ema = file["ema"]
        assert set(ema) == {"decay", "num_updates", "firstweight", "firstbias", "lastweight", "lastbias"}, set(ema)
        assert ema["num_updates"] == 18 and abs(float(ema["decay"]) - 0.9) < 1e-6
        assert ema["firstweight"].shape == weights["first.weight"].shape
        assert not torch.equal(ema["firstweight"], weights["first.weight"])
        assert torch.equal(ema["firstweight"], file["lockstep"]["ema"][0]["state_dict"]["first.weight"])
    else:
        assert set(file["model_ema1"]) == set(weights) == set(file["model_ema2"])
        assert not torch.equal(file["model_ema1"]["first.weight"], file["model_ema2"]["first.weight"])
        assert file["args"]["epochs"] == 3 and file["args"]["ema_decay"] == [0.9, 0.5]


def check(layout, path):
    file = torch.load(path, weights_only=True)
    assert set(file) == KEYS[layout] | {"lockstep"}, set(file)
    net = Net()
    load_model(net, file, layout)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1.0)
    key = {"scribble": "optimizer", "jit_images": "optimizer"}.get(layout, "optimizer_state_dict")
    optimizer.load_state_dict(file[key] if layout != "dit" else file["lockstep"]["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.01
    before = net.first.weight.detach().clone()
    net(torch.ones(2, 4)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, net.first.weight)
    if "scheduler_state_dict" in file:
        check_schedule(optimizer, file["scheduler_state_dict"], 18)
    if "scaler_state_dict" in file:
        torch.amp.GradScaler("cpu", enabled=False).load_state_dict(file["scaler_state_dict"])
    if layout in ("dit", "jit_images"):
        check_averages(file, layout)
    if "epoch" in KEYS[layout]:
        assert file["epoch"] == 3
    if layout == "atlas":
        assert file["global_step"] == 18 and isinstance(file["best_val_loss"], float)
    if layout == "protein":
        assert len(file["train_losses"]) == 3 and len(file["val_losses"]) == 3
    if "loss" in KEYS[layout]:
        assert isinstance(file["loss"], float)
    if layout == "scribble":
        assert isinstance(file["best_pred"], tuple) and all(isinstance(x, float) for x in file["best_pred"])


class Unknown:
    """Something of the original's own code that no other program has."""


def make(layout, path, form):
    torch.manual_seed(5)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    wrap = lambda module: {"module." + name: tensor for name, tensor in module.state_dict().items()}
    file = {key: None for key in KEYS[layout]}
    if layout == "protein":
        file["encoder_state_dict"], file["decoder_state_dict"] = wrap(net.first), wrap(net.last)
    else:
        file[{"scribble": "state_dict", "dit": "model", "jit_images": "model"}.get(layout, "model_state_dict")] = wrap(net)
    if "epoch" in file:
        file["epoch"] = 7
    for key in ("optimizer", "optimizer_state_dict"):
        if key in file:
            file[key] = optimizer.state_dict()
    if layout == "dit":
        file["ema"] = {name.replace(".", ""): tensor for name, tensor in net.named_parameters()}
    if layout == "jit_images":
        file["args"] = argparse.Namespace(model="JiT-B/16")
        file["model_ema1"] = file["model_ema2"] = net.state_dict()
    file["extra"] = Unknown()
    torch.save(file, path, _use_new_zipfile_serialization=form == "zip")


def same_weights(layout, original, ours):
    sys.modules["__main__"].Unknown = Unknown
    theirs, mine = torch.load(original, weights_only=False), torch.load(ours, weights_only=True)
    torch.manual_seed(1)
    a, b = Net(), Net()
    strip = lambda state: {name.removeprefix("module."): tensor for name, tensor in state.items()}
    load_model(a, {key: strip(value) if isinstance(value, dict) and "state" in key or key == "model" else value
                   for key, value in theirs.items()}, layout)
    load_model(b, mine, layout)
    for x, y in zip(a.parameters(), b.parameters()):
        assert torch.equal(x, y)


{"check": check, "make": make, "same_weights": same_weights}[sys.argv[1]](*sys.argv[2:])
