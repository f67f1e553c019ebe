"""Compares every number of metrics.csv with metrics.jsonl, bit by bit."""
import csv
import json
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])
expected = {}
for line in (folder / "metrics.jsonl").read_text().splitlines():
    values = json.loads(line)
    row = expected.setdefault(values.pop("step"), {})
    row.update({name: float(value) for name, value in values.items()})

with open(folder / "metrics.csv", newline="") as file:
    rows = list(csv.DictReader(file))
assert [int(row["step"]) for row in rows] == sorted(expected)
count = 0
for row in rows:
    wanted = expected[int(row.pop("step"))]
    read = {name: float(text) for name, text in row.items() if text}
    assert read.keys() == wanted.keys(), (read, wanted)
    for name, value in read.items():
        assert struct.pack("d", value) == struct.pack("d", wanted[name]), (name, value)
        count += 1
print(f"{len(rows)} rows, {count} numbers are equal")
