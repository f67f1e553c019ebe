"""Reads both images of a run as a viewer does: as XML, and by Pillow."""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

from PIL import Image

folder = pathlib.Path(sys.argv[1])
svg = ElementTree.parse(folder / "loss.svg").getroot()
names = "{http://www.w3.org/2000/svg}"
texts = [element.text for element in svg.iter(f"{names}text")]
print("svg", svg.get("width"), svg.get("height"), "lines", len(list(svg.iter(f"{names}polyline"))))
print("title", texts[0])
with Image.open(folder / "loss.png") as image:
    image.load()
    print("png", image.format, image.mode, *image.size)
    train_blue = (0, 114, 178)
    print("has the line of the training:", train_blue in set(image.getdata()))
