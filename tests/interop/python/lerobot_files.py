"""Data sets that LeRobot 0.4 itself writes, and a check of what lockstep-prepare makes of them by LeRobot's own reader.

Usage: lerobot_files.py make KIND FOLDER
       lerobot_files.py check FOLDER OUTPUT...

Kinds: av1, h264 (videos), image (in parquet files), gop (H.264 with rare key frames and B-frames), old (version 2.1,
a video per episode), damaged. A check compares every episode of each OUTPUT, pixel by pixel, and prints how many frames
there were in each.
"""
import csv
import fractions
import json
import pathlib
import shutil
import sys

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.datasets.video_utils import decode_video_frames
from PIL import Image

FPS = 10
TASKS = ["put the bowl away", "open it"]
TOP, WRIST = "observation.images.top", "observation.images.wrist"
# LeRobot's reader converts pixels in another way when the width is not a multiple of 32.
SIDES = {TOP: (96, 128), WRIST: (74, 100)}
LENGTHS = [6, 11, 16, 21, 26, 7, 9]


def make_images(seed, count, sides):
    coarse = np.random.default_rng(seed).integers(0, 256, (count, 4, 5, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(one).resize((sides[1], sides[0]))) for one in coarse])


def make_data(folder, codec, video_mb=0.02):
    kind = "image" if codec == "image" else "video"
    features = {name: {"dtype": kind, "shape": (*SIDES[name], 3), "names": ["height", "width", "channels"]}
                for name in (TOP, WRIST)}
    features["action"] = {"dtype": "float32", "shape": (7,), "names": None}
    data = LeRobotDataset.create("test/test", fps=FPS, features=features, root=folder, use_videos=kind == "video",
                                 vcodec="h264" if codec == "image" else codec)
    # Several files of several episodes each.
    data.meta.info["video_files_size_in_mb"] = video_mb
    data.meta.info["data_files_size_in_mb"] = 0.5 if kind == "image" else 0.01
    for number, length in enumerate(LENGTHS):
        top, wrist = make_images(number, length, SIDES[TOP]), make_images(number + 500, length, SIDES[WRIST])
        actions = np.random.default_rng(number).normal(size=(length, 7)).astype(np.float32)
        for i in range(length):
            data.add_frame({TOP: top[i], WRIST: wrist[i], "action": actions[i], "task": TASKS[number % 2]})
        data.save_episode()
    data.finalize()


def encode(path, frames, times, time_base):
    """H.264 with one key frame and B-frames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"g": "250", "bf": "3", "sc_threshold": "0"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.time_base = "yuv420p", time_base
        for pixels, time in zip(frames, times):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = time, time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def decoded(path):
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return [one.to_ndarray(format="rgb24") for one in frames], [one.pts for one in frames], frames[0].time_base


def make_gop(folder):
    make_data(folder, "h264")
    for path in folder.glob("videos/*/*/*.mp4"):
        content = decoded(path)
        encode(path, *content)


def make_old(folder):
    """What version 2.1 had: a table and videos per episode."""
    make_data(folder / "new", "h264")
    info = json.loads((folder / "new/meta/info.json").read_text())
    info["codebase_version"] = "v2.1"
    info["data_path"] = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    info["video_path"] = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
    info["chunks_size"] = 4
    (folder / "meta").mkdir()
    (folder / "meta/info.json").write_text(json.dumps(info))
    (folder / "meta/tasks.jsonl").write_text(
        "".join(json.dumps({"task_index": i, "task": task}) + "\n" for i, task in enumerate(TASKS)))
    table = pq.read_table(sorted((folder / "new").glob("data/*/*.parquet")))
    for number, length in enumerate(LENGTHS):
        begin = sum(LENGTHS[:number])
        path = folder / info["data_path"].format(episode_chunk=number // 4, episode_index=number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(begin, length), path)
        for name, seed in ((TOP, number), (WRIST, number + 500)):
            path = folder / info["video_path"].format(episode_chunk=number // 4, episode_index=number, video_key=name)
            times = [512 * i for i in range(length)]
            encode(path, make_images(seed, length, SIDES[name]), times, fractions.Fraction(1, 512 * FPS))
    shutil.rmtree(folder / "new")


def make_damaged(folder):
    """A file per episode and camera. Of the wrist's the first is cut, the second a list of other files, the third
    missing; the last is noise where its frames are. The rows of the fourth episode are 30 ms too late."""
    make_data(folder, "h264", video_mb=1e-6)
    files = sorted(folder.glob(f"videos/{WRIST}/*/*.mp4"))
    assert len(files) == len(LENGTHS), files
    files[0].write_bytes(files[0].read_bytes()[:-2000])
    files[1].write_text("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n")
    files[2].unlink()
    for path in folder.glob("data/*/*.parquet"):
        table = pq.read_table(path)
        times = [time + 0.03 * (number == 3) for number, time in zip(table["episode_index"].to_pylist(),
                                                                     table["timestamp"].to_pylist())]
        column = table.column_names.index("timestamp")
        pq.write_table(table.set_column(column, "timestamp", pa.array(times, pa.float32())), path)
    content = bytearray(files[6].read_bytes())
    begin = content.index(b"mdat") + 4
    size = int.from_bytes(content[begin - 8:begin - 4], "big") - 8
    content[begin:begin + size] = np.random.default_rng(0).bytes(size)
    files[6].write_bytes(bytes(content))


def read_old(folder):
    """Frames as LeRobot's reader of videos gives them."""
    tasks = [json.loads(line)["task"] for line in (folder / "meta/tasks.jsonl").read_text().splitlines()]
    for path in sorted(folder.glob("data/*/*.parquet")):
        rows = pq.read_table(path)
        views = []
        for name in (TOP, WRIST):
            video = folder / "videos" / path.parent.name / name / f"{path.stem}.mp4"
            frames = decode_video_frames(video, rows["timestamp"].to_pylist(), 1e-4)
            views.append([(one * 255).round().byte().permute(1, 2, 0).numpy() for one in frames])
        yield path.stem, *views, np.array(rows["action"].to_pylist(), np.float32), tasks[rows["task_index"][0].as_py()]


def read_new(folder):
    data = LeRobotDataset("test/test", root=folder)
    for number, episode in enumerate(data.meta.episodes):
        items = [data[i] for i in range(episode["dataset_from_index"], episode["dataset_to_index"])]
        views = [[(item[name] * 255).round().byte().permute(1, 2, 0).numpy() for item in items]
                 for name in (TOP, WRIST)]
        yield f"episode_{number:06}", *views, np.stack([item["action"].numpy() for item in items]), items[0]["task"]


def check_episode(episode, top, wrist, actions, task):
    num_frames = 0
    for camera, expected in (("workspace", top), ("wrist", wrist)):
        files = sorted((episode / "images").glob(f"{camera}_*"))
        assert len(files) == len(expected), (episode, camera, len(files), len(expected))
        for file, pixels in zip(files, expected):
            actual = np.asarray(Image.open(file)).astype(int)
            assert np.array_equal(actual, pixels), (file, np.abs(actual - pixels).max())
            num_frames += 1
    rows = list(csv.reader((episode / "actions.csv").read_text().splitlines()))[1:]
    assert np.array_equal(np.array(rows, np.float64).astype(np.float32), actions), episode
    assert (episode / "language_task.txt").read_text() == task + "\n", episode
    return num_frames


def check(folder, *outputs):
    is_old = json.loads((folder / "meta/info.json").read_text())["codebase_version"] == "v2.1"
    found = [{path.name: path for path in output.glob("*/episode_*")} for output in outputs]
    num_frames = [0] * len(outputs)
    for name, *content in (read_old if is_old else read_new)(folder):
        for i, episodes in enumerate(found):
            num_frames[i] += check_episode(episodes.pop(name), *content)
    assert not any(found), found
    print(*num_frames)


def main(what, *rest):
    if what == "check":
        check(*map(pathlib.Path, rest))
        return
    kind, folder = rest[0], pathlib.Path(rest[1])
    {"av1": lambda: make_data(folder, "libsvtav1"), "h264": lambda: make_data(folder, "h264"),
     "image": lambda: make_data(folder, "image"), "gop": lambda: make_gop(folder), "old": lambda: make_old(folder),
     "damaged": lambda: make_damaged(folder)}[kind]()


main(*sys.argv[1:])
