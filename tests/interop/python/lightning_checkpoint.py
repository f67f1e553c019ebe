"""A checkpoint as Trainer.save_checkpoint() of Lightning 2.6 writes it, made with torch alone.

make FILE: a LightningModule that holds the network of the recipe tiny as `model`, besides a loss with
weights and a metric. same FILE CHECKPOINT: the run that began with FILE has its weights.
"""
import sys
import types

import torch


class AttributeDict(dict):
    """Stands for lightning.fabric.utilities.data.AttributeDict, which hyper_parameters may be."""


def pretend_lightning():
    name = "lightning.fabric.utilities.data"
    AttributeDict.__module__ = name
    parts = name.split(".")
    for end in range(1, len(parts) + 1):  # pickle imports the packages around it, too
        package = ".".join(parts[:end])
        sys.modules[package] = types.ModuleType(package)
    sys.modules[name].AttributeDict = AttributeDict


def progress():
    counts = {"ready": 4, "completed": 4, "started": 4, "processed": 4}
    return {"total": dict(counts), "current": dict(counts), "is_last_batch": True}


def module():
    network = torch.nn.Module()
    network.first = torch.nn.Conv2d(1, 8, 3, padding=1)
    network.second = torch.nn.Conv2d(8, 8, 3, padding=1)
    network.last = torch.nn.Linear(8 * 16, 4)
    outer = torch.nn.Module()
    outer.loss = torch.nn.CrossEntropyLoss(weight=torch.ones(4))
    outer.model = network
    outer.metric = torch.nn.BatchNorm1d(4)
    return outer


def make(path):
    torch.manual_seed(5)
    outer = module()
    optimizer = torch.optim.AdamW(outer.parameters(), lr=1e-3)
    sum(parameter.square().sum() for parameter in outer.parameters()).backward()
    optimizer.step()
    monitor = "ModelCheckpoint{'monitor': 'val_loss', 'mode': 'min', 'every_n_train_steps': 0}"
    torch.save({
        "epoch": 1,
        "global_step": 8,
        "pytorch-lightning_version": "2.6.6",
        "state_dict": outer.state_dict(),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_loop.state_dict": {"_batches_that_stepped": 8},
                               "epoch_loop.batch_progress": progress(), "epoch_progress": progress()},
                  "validate_loop": {"state_dict": {}, "batch_progress": progress()}},
        "callbacks": {monitor: {"monitor": "val_loss", "best_model_score": torch.tensor(0.5),
                                "best_k_models": {"a.ckpt": torch.tensor(0.5)}, "kth_value": torch.tensor(0.5)}},
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [],
        "hparams_name": "kwargs",
        "hyper_parameters": AttributeDict(lr=1e-3, sizes=(8, 8)),
    }, path)


def same(path, checkpoint):
    given = torch.load(path, weights_only=False)["state_dict"]
    taken = torch.load(checkpoint, weights_only=True)["model_state_dict"]
    assert len(taken) == 6
    for name, tensor in taken.items():
        assert torch.equal(given["model." + name], tensor), name


pretend_lightning()
{"make": make, "same": same}[sys.argv[1]](*sys.argv[2:])
