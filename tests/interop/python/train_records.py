"""Reads the records of one training with wandb's and TensorBoard's own readers and compares them with metrics.jsonl."""
import glob
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2

from wandb_frames import payloads

run_folder, wandb_folder, exit_code, num_images = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

expected = {}  # step -> metrics
for line in open(f"{run_folder}/metrics.jsonl"):
    record = json.loads(line)
    step = record.pop("step")
    expected.setdefault(step, {}).update({name: float(value) for name, value in record.items()})


def read_wandb():
    files = glob.glob(f"{wandb_folder}/offline-run-*/run-*.wandb")
    assert len(files) == 1, files
    with open(files[0], "rb") as file:
        return [wandb_internal_pb2.Record.FromString(payload) for payload in payloads(file.read())]


def equal(a, b):
    return a == b or math.isnan(a) and math.isnan(b)


def check_history(records):
    last = 0
    seen = {}
    count = 0
    for record in records:
        if record.WhichOneof("record_type") != "history":
            continue
        step = record.history.step.num
        assert step > last, (step, last)
        last = step
        values = {}
        for item in record.history.item:
            key = list(item.nested_key) or [item.key]
            if key[-1] == "_type":
                count += json.loads(item.value_json) == "image-file"
            if len(key) == 1 and not key[0].startswith("_"):
                values[key[0]] = json.loads(item.value_json)
        seen[step] = values
    assert set(seen) == set(expected), (set(seen), set(expected))
    for step, metrics in expected.items():
        assert set(seen[step]) == set(metrics), (step, seen[step], metrics)
        assert all(equal(seen[step][name], value) for name, value in metrics.items()), step
    assert count == num_images, count


def check_wandb():
    records = read_wandb()
    kinds = [record.WhichOneof("record_type") for record in records]
    assert kinds[:2] == ["header", "run"] and kinds[-2:] == ["final", "footer"], kinds
    assert kinds.count("run") == 1 and kinds.count("exit") == 1
    assert [record.num for record in records] == list(range(1, len(records) + 1))
    check_history(records)
    run = records[1].run
    config = {tuple(item.nested_key) or (item.key,): json.loads(item.value_json) for item in run.config.update}
    flat = config.get(("batch_size",), config.get(("batch_size", "value")))
    assert flat == 8, config
    assert run.project == "lockstep"
    assert records[kinds.index("exit")].exit.exit_code == exit_code
    console = "".join(record.output_raw.line for record in records if record.HasField("output_raw"))
    assert "training samples" in console, console


def check_tensorboard():
    events = EventAccumulator(f"{run_folder}/tensorboard", size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    names = {name for metrics in expected.values() for name in metrics}
    assert set(events.Tags()["scalars"]) == names
    for name in names:
        got = [(event.step, event.value) for event in events.Scalars(name)]
        want = [(step, metrics[name]) for step, metrics in sorted(expected.items()) if name in metrics]
        assert [step for step, _ in got] == [step for step, _ in want], (name, got, want)
        assert all(math.isclose(a[1], b[1], rel_tol=1e-6, abs_tol=1e-30) or equal(a[1], b[1])
                   for a, b in zip(got, want)), name
    assert len(events.Images("samples") if num_images else []) == num_images
    assert "batch_size: 8" in str(events.Tensors("config")[0])


check_wandb()
check_tensorboard()
