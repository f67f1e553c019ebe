"""Prints the records of a .wandb file, one JSON object per line, read by wandb's own messages.

What depends on the machine is compared here and left out.
"""

import json
import os
import platform
import socket
import sys

from google.protobuf.json_format import MessageToDict
from wandb.proto import wandb_internal_pb2

from wandb_frames import payloads

def check_machine(environment):
    assert environment.pop("os").startswith(f"Linux-{platform.release()}-")
    assert environment.pop("host") == socket.gethostname()
    assert environment.pop("root") == os.environ["EXPECTED_ROOT"]
    assert environment.pop("executable") == os.environ["EXPECTED_EXECUTABLE"]
    assert environment.pop("cpu_count") == environment.pop("cpu_count_logical") == os.cpu_count()
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert int(environment.pop("memory")["total"]) == total
    gpus = environment.pop("gpu_nvidia", [])
    assert environment.pop("gpu_count", 0) == len(gpus)
    environment.pop("gpu_type", None)


def check_stats(stats):
    values = {item["key"]: json.loads(item["value_json"]) for item in stats.pop("item")}
    assert 0 < values["memory_percent"] <= 100, values
    assert values["proc.memory.rssMB"] > 1, values
    assert values["proc.cpu.threads"] >= 1, values


with open(sys.argv[1], "rb") as file:
    for payload in payloads(file.read()):
        record = wandb_internal_pb2.Record.FromString(payload)
        assert record.WhichOneof("record_type"), "wandb-core stops at a record without a kind"
        shown = MessageToDict(record, preserving_proto_field_name=True)
        if "environment" in shown:
            check_machine(shown["environment"])
        if "stats" in shown:
            check_stats(shown["stats"])
        if "run" in shown:
            assert shown["run"].pop("host") == socket.gethostname()
        print(json.dumps(shown, sort_keys=True, separators=(",", ":")))
