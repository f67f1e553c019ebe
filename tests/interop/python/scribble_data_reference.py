"""What OpenCV, Pillow and scipy make of images and label maps.

usage: scribble_data_reference.py FOLDER

Writes inputs to the folder and prints one line per result, "KIND FILE ARGUMENTS WIDTH HEIGHT
RESULT": ARGUMENTS are numbers with commas, RESULT is a file of bytes. Files named ours-* were
there before; they are read by Pillow.
"""
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from scipy.ndimage import distance_transform_edt

folder = Path(sys.argv[1])
random = np.random.default_rng(3)
PADDING = (124, 116, 104)  # ImageNet's mean


def make_image(width, height):
    """Waves, edges and noise: every level, every frequency."""
    noise = random.integers(0, 60, (height, width, 3))
    y, x = np.mgrid[0:height, 0:width]
    waves = 90 * np.sin(x / 17) + 90 * np.cos(y / 9) + 60 * ((x // 40 + y // 30) % 2)
    return (waves[..., None] + noise + np.array([60, 90, 120])).clip(0, 255).astype(np.uint8)


def labels(width, height):
    """Discs of several classes, a band without a label."""
    y, x = np.mgrid[0:height, 0:width]
    out = np.zeros((height, width), np.uint8)
    for number in (1, 7, 20, 15):
        cx, cy = random.uniform(0, width), random.uniform(0, height)
        out[(x - cx) ** 2 + (y - cy) ** 2 < random.uniform(20, 1500)] = number
    out[height // 2 : height // 2 + 2, : width // 2] = 255
    return out


def scribbles(width, height):
    out = np.full((height, width), 255, np.uint8)
    for number in (0, 0, 3, 9):
        line = [int(v) for v in random.integers(0, [width, height, width, height])]
        cv2.line(out, tuple(line[:2]), tuple(line[2:]), number, 2)
    return out


def show(kind, path, arguments, result):
    name = folder / f"{kind}-{path.name}-{len(list(folder.iterdir()))}.raw"
    name.write_bytes(np.ascontiguousarray(result, np.uint8).tobytes())
    numbers = ",".join(repr(float(a)) for a in arguments) or "0"
    print(kind, path, numbers, result.shape[1], result.shape[0], name)


def rotated(image, degrees, nearest):
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1)
    flags = cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
    border = 255 if nearest else PADDING
    return cv2.warpAffine(image, matrix, (width, height), flags=flags,
                          borderMode=cv2.BORDER_CONSTANT, borderValue=border)


def augmented(image, draws, side, nearest):
    """Scale, rotation, blur, mirror, crop with padding on both sides."""
    scale, degrees, blur, mirror, across, down = draws
    image = cv2.resize(image, None, fx=scale, fy=scale,
                       interpolation=cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR)
    if degrees:
        image = rotated(image, degrees, nearest)
    if blur and not nearest:
        image = cv2.GaussianBlur(image, (5, 5), 0)
    if mirror:
        image = cv2.flip(image, 1)
    height, width = image.shape[:2]
    pad_y, pad_x = max(side - height, 0), max(side - width, 0)
    image = cv2.copyMakeBorder(image, pad_y // 2, pad_y - pad_y // 2, pad_x // 2,
                               pad_x - pad_x // 2, cv2.BORDER_CONSTANT,
                               value=255 if nearest else PADDING)
    height, width = image.shape[:2]
    top, left = int(down * (height - side + 1)), int(across * (width - side + 1))
    return image[top : top + side, left : left + side]


def geometry(width, height):
    photo, truth = folder / f"photo-{width}x{height}.png", folder / f"map-{width}x{height}.png"
    image, numbers = make_image(width, height), labels(width, height)
    Image.fromarray(image).save(photo)
    Image.fromarray(numbers).save(truth)
    for size in ((64, 64), (33, 100), (250, 187), (500, 40), (700, 611), (1, 1)):
        show("size", photo, size, cv2.resize(image, size, interpolation=cv2.INTER_LINEAR))
        show("size", truth, size, cv2.resize(numbers, size, interpolation=cv2.INTER_NEAREST))
    for factor in (0.5, 1.0, 2.0, *random.uniform(0.5, 2, 4)):
        factors = {"fx": factor, "fy": factor}
        show("factor", photo, [factor],
             cv2.resize(image, None, **factors, interpolation=cv2.INTER_LINEAR))
        show("factor", truth, [factor],
             cv2.resize(numbers, None, **factors, interpolation=cv2.INTER_NEAREST))
    for degrees in (0.0, 10.0, -10.0, *random.uniform(-10, 10, 4)):
        show("rotate", photo, [degrees], rotated(image, degrees, False))
        show("rotate", truth, [degrees], rotated(numbers, degrees, True))
    show("blur", photo, [], cv2.GaussianBlur(image, (5, 5), 0))
    for round_number in range(8):
        degrees = random.uniform(-10, 10) if round_number % 2 else 0.0
        draws = [random.uniform(0.5, 2), degrees, round_number // 2 % 2, round_number // 4,
                 random.uniform(), random.uniform()]
        show("augment", photo, draws, augmented(image, draws, 129, False))
        show("augment", truth, draws, augmented(numbers, draws, 129, True))


def label_files():
    numbers = labels(61, 47)
    palette = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)[::-1].copy()
    for bits, most in ((8, 255), (4, 15), (2, 3), (1, 1)):
        image = Image.fromarray(np.minimum(numbers, most), mode="P")
        image.putpalette(palette.tobytes())
        path = folder / f"labels-palette-{bits}.png"
        image.save(path, bits=bits)
        show("labels", path, [], np.asarray(Image.open(path)))
    for mode in ("L", "RGB"):
        path = folder / f"labels-{mode}.png"
        Image.fromarray(numbers).convert(mode).save(path)
        show("labels", path, [], numbers)
    for path in sorted(folder.glob("ours-*.png")):
        image = Image.open(path)
        assert image.mode == "P", image.mode
        show("labels", path, [], np.asarray(image))
        show("colours", path, [], np.asarray(image.convert("RGB")))


def distances(width, height):
    marks, numbers = scribbles(width, height), labels(width, height)
    for name, values in (("scribbles", marks), ("outlines", numbers)):
        path = folder / f"{name}-{width}x{height}.png"
        Image.fromarray(values).save(path)
        mask = ((values > 0) & (values != 255)).astype(np.uint8)
        for factor in (np.e, np.e**2, np.e**6):
            goal = mask
            if name == "outlines":
                goal = np.zeros_like(mask)
                found, _ = cv2.findContours(mask, cv2.RETR_TREE, cv2.CHAIN_APPROX_NONE)
                cv2.drawContours(goal, found, -1, 1, 1)
            far = np.minimum(255, np.sqrt(factor) * distance_transform_edt(goal == 0))
            far = far.astype(np.uint8)
            show(name, path, [factor], far if name == "outlines" else 255 - far)


geometry(203, 151)
geometry(96, 240)
label_files()
for size in ((500, 375), (97, 31), (40, 200)):
    distances(*size)
