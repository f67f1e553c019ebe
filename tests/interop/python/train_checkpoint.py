"""Loads a checkpoint of the recipe tiny into torch, as a user would, and prints what it found."""
import sys

import torch


class TinyNet(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Conv2d(1, width, 3, padding=1)
        self.second = torch.nn.Conv2d(width, width, 3, padding=1)
        self.last = torch.nn.Linear(width * 16, 4)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.max_pool2d(torch.relu(self.second(x)), 2)
        return self.last(x.flatten(1))


def main(path, kind):
    checkpoint = torch.load(path, weights_only=True)
    net = TinyNet(8)
    net.load_state_dict(checkpoint["model_state_dict"])
    make = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind]
    optimizer = make(net.parameters(), lr=1.0)
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    group = optimizer.param_groups[0]
    print("lr", group["lr"])
    if kind != "sgd":
        print("betas", group["betas"])
        print("step", int(optimizer.state[net.last.bias]["step"]))
        assert group["decoupled_weight_decay"]
    else:
        print("momentum", group["momentum"])
    before = net.last.weight.detach().clone()
    net(torch.ones(2, 1, 16, 16)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, net.last.weight), "the loaded optimizer does not train"
    print("global_step", checkpoint["global_step"], "epoch", checkpoint["epoch"])


main(*sys.argv[1:])
