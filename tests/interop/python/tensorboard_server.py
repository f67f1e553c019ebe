"""Starts TensorBoard on a folder and prints what its pages are filled with.

Arguments: the folder; "true" or "false": whether the server's fast reader is used.
"""
import io
import json
import logging
import sys
import time
import urllib.parse
import urllib.request

from PIL import Image
from tensorboard import default, program

logging.disable(logging.WARNING)
board = program.TensorBoard(default.get_plugins())
board.configure(
    argv=[None, "--logdir", sys.argv[1], "--host", "127.0.0.1", "--port", "0",
          "--reload_interval", "1", "--load_fast", sys.argv[2]]
)
address = board.launch()


def ask(path, **values):
    query = urllib.parse.urlencode(values)
    with urllib.request.urlopen(f"{address}data/plugin/{path}?{query}", timeout=20) as answer:
        return answer.read()


def ask_json(path, **values):
    return json.loads(ask(path, **values))


# The server loads in the background: the last step is there when all is.
deadline = time.time() + 120
while True:
    tags = ask_json("scalars/tags")
    if "train/loss" in tags.get("run", {}):
        points = ask_json("scalars/scalars", run="run", tag="train/loss")
        if points[-1][1] == 5:
            break
    assert time.time() < deadline, f"nothing loaded: {tags}"
    time.sleep(0.2)


def show_tags(plugin):
    for run, names in ask_json(f"{plugin}/tags").items():
        print(f"{plugin} {run}:", *sorted(names))


show_tags("scalars")
for tag in ("train/loss", "val/loss"):
    points = ask_json("scalars/scalars", run="run", tag=tag)
    print(tag, *(f"{step}:{value}" for _, step, value in points))

show_tags("images")
samples = ask_json("images/images", run="run", tag="samples", sample=0)
for sample in samples:
    query = dict(urllib.parse.parse_qsl(sample["query"]))
    image = Image.open(io.BytesIO(ask("images/individualImage", **query)))
    width, height = image.size
    print(f"samples {sample['step']}:{width}x{height} shade {image.getpixel((0, 0))[0]}")

show_tags("text")
for note in ask_json("text/text", run="run", tag="config"):
    print(f"config {note['step']}:{note['text']}")
