"""Python's side of the loader benchmark: torch's DataLoader over Pillow, as the DiT family reads
its images. Also makes the images.

    loader_worker.py make FOLDER COUNT
    loader_worker.py read FOLDER WORKERS full|draft
"""
import json
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

IMAGE_SIZE = 64
BATCH_SIZE = 64


def texture(rng, side):
    """Noise whose strength falls with its frequency, as in photographs."""
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None, :])
    frequency[0, 0] = 1
    spectrum = np.fft.fft2(rng.standard_normal((side, side))) / frequency
    field = np.fft.ifft2(spectrum).real
    return field / field.std()


def make(folder, count):
    """500x375 pixels: gradients, shapes and texture; of ImageNet's mean file size."""
    rng = np.random.default_rng(0)
    textures = np.stack([texture(rng, 1024) for _ in range(3)], axis=-1)
    for number in range(count):
        left, top = rng.integers(0, 1024 - 500), rng.integers(0, 1024 - 375)
        across = np.linspace(0, 1, 500)[None, :, None] * rng.uniform(-80, 80, 3)
        levels = 128 + across + 45 * textures[top : top + 375, left : left + 500]
        image = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
        draw = ImageDraw.Draw(image)
        for _ in range(6):
            x, y, radius = rng.integers(0, 500), rng.integers(0, 375), rng.integers(10, 60)
            color = tuple(int(c) for c in rng.integers(0, 255, 3))
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=color, width=4)
        path = folder / f"class{number % 10}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, quality=90)


def center_crop(image):
    while min(image.size) >= 2 * IMAGE_SIZE:
        image = image.resize(tuple(x // 2 for x in image.size), resample=Image.BOX)
    scale = IMAGE_SIZE / min(image.size)
    image = image.resize(tuple(round(x * scale) for x in image.size), resample=Image.BICUBIC)
    left, top = (image.width - IMAGE_SIZE) // 2, (image.height - IMAGE_SIZE) // 2
    return image.crop((left, top, left + IMAGE_SIZE, top + IMAGE_SIZE))


class Images(Dataset):
    def __init__(self, folder, draft):
        self.paths = sorted(folder.glob("*/*.jpg"))
        names = sorted({path.parent.name for path in self.paths})
        self.labels = [names.index(path.parent.name) for path in self.paths]
        self.draft = draft

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            image = Image.open(file)
            if self.draft:
                image.draft("RGB", (IMAGE_SIZE, IMAGE_SIZE))
            image = center_crop(image.convert("RGB"))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
        return pixels, self.labels[index]


def read(folder, workers, draft):
    """The first epoch starts the workers and is not counted."""
    loader = DataLoader(
        Images(folder, draft),
        batch_size=BATCH_SIZE,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
    )
    for _ in range(2):
        begin = time.perf_counter()
        seen = sum(len(images) for images, _ in loader)
        seconds = time.perf_counter() - begin
    print(json.dumps({"images_per_s": seen / seconds}))


if sys.argv[1] == "make":
    make(Path(sys.argv[2]), int(sys.argv[3]))
else:
    read(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "draft")
