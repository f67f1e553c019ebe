"""Data sets for lockstep-prepare, and a check of the episodes that it makes of them.

Usage: prepare_files.py make KIND FOLDER [N]
       prepare_files.py check KIND INPUT OUTPUT [NAME]

Kinds: libero, libero-bad, libero-heap, lerobot, lerobot-names, lerobot-bad, parquet. N is the number of LeRobot's
episodes. A check compares every episode of OUTPUT with what h5py and pyarrow read from INPUT, pixels and
bytes alike, and prints how many there were; NAME is "flip" (upside down) or "one" (no wrist view).
"""
import csv
import io
import json
import pathlib
import struct
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

NAMES = ["x", "y", "z", "roll", "pitch", "yaw", "gripper"]


def make_images(seed, count, height, width):
    draw = np.random.default_rng(seed)
    coarse = draw.integers(0, 256, (count, 4, 5, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(one).resize((width, height))) for one in coarse])


def numbers(seed, count, size=7):
    return np.random.default_rng(seed).normal(size=(count, size))


def encoded(image, kind):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, kind)
    return stream.getvalue()


# LIBERO

def add_demo(data, name, seed, count, **storage):
    demo = data.create_group(name)
    demo["actions"] = numbers(seed, count)
    demo.create_dataset("obs/agentview_rgb", data=make_images(seed, count, 20, 24), **storage)
    demo.create_dataset("obs/eye_in_hand_rgb", data=make_images(seed + 500, count, 20, 24), **storage)
    demo["obs/joint_states"] = numbers(seed, count)
    return demo


def make_libero(folder):
    (folder / "libero_10").mkdir(parents=True)
    with h5py.File(folder / "libero_10" / "KITCHEN_SCENE3_turn_on_the_stove_demo.hdf5", "w") as file:
        data = file.create_group("data")
        data.attrs["problem_info"] = json.dumps({"language_instruction": "turn on the \u201cold\u201d stove"})
        data.attrs["macros_image_convention"] = "opengl"
        for number in (0, 1, 10):
            add_demo(data, f"demo_{number}", number, 3 + number % 3)
    with h5py.File(folder / "libero_10" / "LIVING_ROOM_SCENE1_pick_up_the_cup_demo.hdf5", "w") as file:
        data = file.create_group("data")
        data.attrs["problem_info"] = np.bytes_(b"no json")
        add_demo(data, "demo_0", 20, 40, chunks=(7, 20, 24, 3), compression="gzip")
        add_demo(data, "demo_1", 21, 2)
        add_demo(data, "demo_2", 22, 9, chunks=(2, 20, 24, 3), compression="lzf", shuffle=True)


def add_zstandard(group, name, values):
    """A dataset of a compression that neither this h5py nor lockstep-prepare knows."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(values.shape)
    properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
    space = h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.NATIVE_UINT8, space, properties)
    dataset.write_direct_chunk((0,) * values.ndim, b"compressed", 0)


def make_libero_bad(folder):
    folder.mkdir(parents=True)
    (folder / "empty_demo.hdf5").write_bytes(b"")
    with h5py.File(folder / "cut_demo.hdf5", "w") as file:
        add_demo(file.create_group("data"), "demo_0", 1, 3)
    whole = (folder / "cut_demo.hdf5").read_bytes()
    (folder / "cut_demo.hdf5").write_bytes(whole[: len(whole) // 2])
    with h5py.File(folder / "nothing_demo.hdf5", "w") as file:
        file["other"] = 3
    with h5py.File(folder / "mixed_demo.hdf5", "w") as file:
        data = file.create_group("data")
        add_demo(data, "demo_0", 2, 3)
        del add_demo(data, "demo_1", 3, 3)["obs"]
        del add_demo(data, "demo_2", 4, 3)["actions"]
        demo = add_demo(data, "demo_3", 5, 3)
        del demo["actions"]
        demo["actions"] = numbers(5, 3, 8)
        demo = add_demo(data, "demo_4", 6, 3)
        demo["actions"][1, 2] = np.nan
        demo = add_demo(data, "demo_5", 7, 3)
        del demo["obs/agentview_rgb"]
        demo["obs/agentview_rgb"] = np.zeros((3, 20, 24, 3), np.float32)
        demo = add_demo(data, "demo_6", 8, 3)
        del demo["obs/eye_in_hand_rgb"]
        demo["obs/eye_in_hand_rgb"] = make_images(8, 2, 20, 24)
        demo = add_demo(data, "demo_7", 9, 3)
        del demo["actions"]
        demo["actions"] = numbers(9, 2)
        demo = add_demo(data, "demo_8", 10, 3)
        del demo["obs/agentview_rgb"]
        add_zstandard(demo["obs"], "agentview_rgb", make_images(10, 3, 20, 24))


def make_libero_heap(folder):
    """Files whose global heap, where texts of any length are, gives its first text a size that cannot be:
    one that brings a reader back to where it was, and one far beyond the file. And actions of 5.6 GB."""
    for name, size in (("endless", 2**64 - 16), ("beyond", 2**28)):
        path = folder / f"{name}_demo.hdf5"
        with h5py.File(path, "w") as file:
            data = file.create_group("data")
            data.attrs["problem_info"] = json.dumps({"language_instruction": "open it"})
            data.attrs["macros_image_convention"] = "opengl"
            add_demo(data, "demo_0", 1, 3)
        damaged = bytearray(path.read_bytes())
        heap = damaged.index(b"GCOL")
        # Behind the heap's header of 16 bytes: index, count of references, 4 bytes, size.
        damaged[heap + 24:heap + 32] = struct.pack("<Q", size)
        path.write_bytes(bytes(damaged))
    with h5py.File(folder / "memory_demo.hdf5", "w") as file:
        demo = add_demo(file.create_group("data"), "demo_0", 2, 3)
        del demo["actions"]
        demo.create_dataset("actions", shape=(200_000_000, 7), dtype="f4", chunks=(1000, 7))


def libero_episodes(folder):
    for path in sorted(folder.rglob("*.hdf5")):
        with h5py.File(path) as file:
            for name, demo in file["data"].items():
                place = str(path.relative_to(folder))[: -len("_demo.hdf5")].replace("/", "-")
                yield f"episode_{place}-{name}", demo["obs/agentview_rgb"][:], demo["obs/eye_in_hand_rgb"][:], \
                    demo["actions"][:].astype(np.float32), \
                    "turn on the \u201cold\u201d stove" if "stove" in place else "pick up the cup"


# LeRobot

def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def lerobot_table(number, names, count):
    kind = "JPEG" if number % 2 else "PNG"
    image, wrist, action = names

    def column(seed):
        return pa.array([{"bytes": encoded(one, kind), "path": f"{i}.png"}
                         for i, one in enumerate(make_images(seed, count, 32, 32))])

    actions = numbers(number, count)
    columns = {
        image: column(number),
        wrist: column(number + 500),
        "state": pa.array(numbers(number, count, 8).tolist()),
        action: pa.FixedSizeListArray.from_arrays(pa.array(actions.astype(np.float32).ravel()), 7)
        if action == "actions" else pa.array(actions.tolist()),
        "frame_index": pa.array(range(count)),
        "episode_index": pa.array([number] * count),
        "task_index": pa.array([number % 2] * count),
    }
    return pa.table(columns)


def make_lerobot(folder, names, num_episodes):
    image, wrist, action = names
    (folder / "meta").mkdir(parents=True)
    features = {image: {"dtype": "image"}, wrist: {"dtype": "image"}, "state": {"dtype": "float32"},
                action: {"dtype": "float32", "shape": [7]}}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v2.0", "features": features}))
    write_lines(folder / "meta" / "tasks.jsonl",
                [{"task_index": i, "task": task} for i, task in enumerate(["put the bowl away", "open it"])])
    counts = [3 + 20 * (i % 3) for i in range(num_episodes)]
    write_lines(folder / "meta" / "episodes.jsonl",
                [{"episode_index": i, "tasks": ["listed"], "length": count} for i, count in enumerate(counts)])
    for number, count in enumerate(counts):
        path = folder / "data" / f"chunk-{number // 3:03}" / f"episode_{number:06}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(lerobot_table(number, names, count), path, row_group_size=10)


PLAIN = ("image", "wrist_image", "actions")
LONG = ("observation.images.top", "observation.images.wrist", "action")


def make_lerobot_bad(folder):
    make_lerobot(folder, PLAIN, 10)

    def change(number, work):
        path = folder / "data" / f"chunk-{number // 3:03}" / f"episode_{number:06}.parquet"
        pq.write_table(work(pq.read_table(path)), path)

    def replaced(table, name, values):
        return table.set_column(table.column_names.index(name), name, values)

    change(1, lambda table: table.drop_columns(["wrist_image"]))
    path = folder / "data" / "chunk-000" / "episode_000002.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    change(3, lambda table: replaced(table, "actions", pa.array([[float("nan")] * 7] * len(table))))
    change(4, lambda table: replaced(table, "image", pa.array([{"bytes": None, "path": "a.png"}] * len(table))))
    change(5, lambda table: replaced(table, "actions", pa.array(numbers(0, len(table), 8).tolist())))
    change(6, lambda table: replaced(table, "task_index", pa.array(range(len(table)))))
    change(7, lambda table: replaced(table, "image", pa.array([{"bytes": b"GIF89a", "path": ""}] * len(table))))
    change(8, lambda table: table.slice(0, 2))
    (folder / "data" / "chunk-003" / "episode_000009.parquet").unlink()
    # Its task is in no table, but listed.
    change(0, lambda table: replaced(table, "task_index", pa.array([9] * len(table))))


def lerobot_episodes(folder, names):
    image, wrist, action = names
    tasks = [json.loads(line)["task"] for line in (folder / "meta" / "tasks.jsonl").read_text().splitlines()]
    for path in sorted(folder.glob("data/*/*.parquet")):
        rows = pq.read_table(path).to_pylist()
        yield path.stem, [row[image]["bytes"] for row in rows], [row[wrist]["bytes"] for row in rows], \
            np.array([row[action] for row in rows], np.float32), tasks[rows[0]["task_index"]]


# The local layout.

def make_parquet(folder):
    for number, split in enumerate(["train", "train", "val"]):
        episode = folder / split / f"episode_{number:03}"
        (episode / "images").mkdir(parents=True)
        for i, image in enumerate(make_images(number, 4, 16, 16)):
            (episode / "images" / f"workspace_{i:03}.png").write_bytes(encoded(image, "PNG"))
            (episode / "images" / f"wrist_{i:03}.jpg").write_bytes(encoded(image, "JPEG"))
        values = numbers(number, 5)
        columns = {"time": pa.array(range(5))} | {name: pa.array(values[:, i]) for i, name in enumerate(NAMES)}
        pq.write_table(pa.table(columns), episode / "actions.parquet")
        if number == 1:
            (episode / "metadata.json").write_text(json.dumps({"language_task": "task 1"}))
        else:
            (episode / "language_task.txt").write_text(f"task {number}")


def parquet_episodes(folder):
    for path in sorted(folder.glob("*/episode_*")):
        files = [[one.read_bytes() for one in sorted((path / "images").glob(f"{name}_*"))]
                 for name in ("workspace", "wrist")]
        table = pq.read_table(path / "actions.parquet")
        values = np.stack([table[name].to_numpy() for name in NAMES], 1)
        yield path.name, *files, values.astype(np.float32), f"task {int(path.name[-3:])}"


def check(episodes, output, variant):
    found = {path.name: path for path in output.glob("*/episode_*")}
    compared = 0
    for name, workspace, wrist, actions, sentence in episodes:
        if name not in found:
            continue
        folder = found.pop(name)
        for camera, expected in (("workspace", workspace), ("wrist", [] if variant == "one" else wrist)):
            files = sorted((folder / "images").glob(f"{camera}_*"))
            assert len(files) == len(expected), (name, camera, len(files), len(expected))
            for file, image in zip(files, expected):
                if isinstance(image, bytes):
                    assert file.read_bytes() == image, file
                    assert file.suffix == (".png" if image.startswith(b"\x89PNG") else ".jpg"), file
                else:
                    wanted = image[::-1] if variant == "flip" else image
                    assert np.array_equal(np.asarray(Image.open(file)), wanted), file
        with open(folder / "actions.csv", encoding="ascii") as file:
            rows = list(csv.reader(file))
        assert rows[0] == NAMES
        assert np.array_equal(np.array(rows[1:], np.float64).astype(np.float32), actions), name
        if (folder / "language_task.txt").exists():
            assert (folder / "language_task.txt").read_text(encoding="utf-8") in (sentence, sentence + "\n"), name
        compared += 1
    assert not found, found
    print(compared)


def main(what, kind, folder, *rest):
    folder = pathlib.Path(folder)
    names = LONG if kind == "lerobot-names" else PLAIN
    if what == "make":
        {"libero": make_libero, "libero-bad": make_libero_bad, "libero-heap": make_libero_heap,
         "lerobot-bad": make_lerobot_bad, "parquet": make_parquet,
         "lerobot": lambda folder: make_lerobot(folder, names, int(rest[0])),
         "lerobot-names": lambda folder: make_lerobot(folder, names, 3)}[kind](folder)
        return
    episodes = {"libero": libero_episodes, "parquet": parquet_episodes,
                "lerobot": lambda folder: lerobot_episodes(folder, names)}[kind.split("-")[0]](folder)
    check(episodes, pathlib.Path(rest[0]), rest[1] if len(rest) > 1 else "")


main(*sys.argv[1:])
