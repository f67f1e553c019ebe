"""Pillow's view of image files: decoded, shrunk while decoding, resized, cropped.

usage: image_reference.py FOLDER

Adds JPEG files of Pillow's own to the folder, then prints one line per result,
"KIND FILE ARGUMENT WIDTH HEIGHT RESULT", and writes the RGB bytes of each to RESULT.
"""
import sys
from pathlib import Path

import numpy as np
from PIL import Image

FILTERS = {
    "nearest": Image.NEAREST,
    "box": Image.BOX,
    "bilinear": Image.BILINEAR,
    "bicubic": Image.BICUBIC,
}
SIZES = [(64, 64), (33, 100), (250, 187), (500, 40), (700, 611), (1, 1)]

folder = Path(sys.argv[1])


def make_image(width, height):
    """Waves, edges and noise: every level, every frequency."""
    noise = np.random.default_rng(7).integers(0, 60, (height, width, 3))
    y, x = np.mgrid[0:height, 0:width]
    waves = 90 * np.sin(x / 17) + 90 * np.cos(y / 9) + 60 * ((x // 40 + y // 30) % 2)
    levels = waves[..., None] + noise + np.array([60, 90, 120])
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


def write_jpegs():
    image = make_image(500, 375)
    for subsampling in (0, 1, 2):
        image.save(folder / f"pillow-{subsampling}.jpg", subsampling=subsampling, quality=85)
    image.save(folder / "pillow-progressive.jpg", progressive=True)
    image.save(folder / "pillow-odd.jpg", quality=30, restart_marker_blocks=4)
    image.convert("L").save(folder / "pillow-grey.jpg")
    image.convert("CMYK").save(folder / "pillow-cmyk.jpg")
    make_image(203, 499).save(folder / "pillow-tall.png")


def decoded(path):
    image = Image.open(path)
    if image.mode == "I;16":  # which convert() would clip at 255
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def resized(image, size, resample):
    """Rows before columns in every version: Pillow 13 chooses when one call does both."""
    if resample == Image.NEAREST:
        return image.resize(size, resample)
    return image.resize((size[0], image.height), resample).resize(size, resample)


def adm_center_crop(image, size):
    while min(image.size) >= 2 * size:
        image = resized(image, tuple(x // 2 for x in image.size), Image.BOX)
    scale = size / min(image.size)
    image = resized(image, tuple(round(x * scale) for x in image.size), Image.BICUBIC)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def show(kind, path, argument, image):
    result = folder / f"{kind}-{path.name}-{argument}-{image.width}x{image.height}.rgb"
    result.write_bytes(image.tobytes())
    print(kind, path, argument, image.width, image.height, result)


write_jpegs()
for file in sorted([*folder.glob("*.jpg"), *folder.glob("*.png")]):
    show("decode", file, "-", decoded(file))
    if file.suffix == ".jpg":
        for least in (20, 50, 94):
            small = Image.open(file)
            small.draft(None, (least, least))
            show("draft", file, least, small.convert("RGB"))
    if file.name in ("pillow-0.jpg", "pillow-tall.png"):
        whole = decoded(file)
        for name, resample in FILTERS.items():
            for target in SIZES:
                show("resize", file, name, resized(whole, target, resample))
        for side in (16, 64, 100, 256):
            show("adm", file, side, adm_center_crop(whole, side))
