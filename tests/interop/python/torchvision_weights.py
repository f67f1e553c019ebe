"""Writes weights of a ResNet under the names of torchvision, as its downloads have them.

Usage: torchvision_weights.py LAYERS FILE
"""
import sys

import torch
import torchvision

torch.manual_seed(3)
model = getattr(torchvision.models, f"resnet{sys.argv[1]}")(weights=None)
torch.save(model.state_dict(), sys.argv[2])
