"""Prints what TensorBoard's own reader finds in a folder of event files, by value."""
import io
import sys

from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

everything = {"scalars": 0, "images": 0, "tensors": 0}
events = EventAccumulator(sys.argv[1], size_guidance=everything)
events.Reload()
tags = events.Tags()


def describe_image(event):
    image = Image.open(io.BytesIO(event.encoded_image_string))
    assert image.size == (event.width, event.height)
    return f"{event.width}x{event.height} shade {image.getpixel((0, 0))[0]}"


def text(event):
    assert event.tensor_proto.dtype == 7
    assert not event.tensor_proto.tensor_shape.dim
    return event.tensor_proto.string_val[0].decode()


def show(kind, names, read, value):
    for name in sorted(names):
        print(kind, name, *(f"{e.step}:{value(e)}" for e in read(name)))


show("scalar", tags["scalars"], events.Scalars, lambda e: f"{e.value:g}")
show("image", tags["images"], events.Images, describe_image)
for name in tags["tensors"]:
    assert events.SummaryMetadata(name).plugin_data.plugin_name == "text"
show("text", tags["tensors"], events.Tensors, text)
