"""Compares draws that C++ wrote into a folder, one file per kind, with those of philox.py."""
import sys
from pathlib import Path

import numpy as np
import philox

folder = Path(sys.argv[1])
seeds = [philox.sample_seed(7, 3, index) for index in range(100)]
batch = philox.SampleRandom(seeds)
host = philox.RandomStream(seeds[0], 5)
order = list(range(1000))
expected = {
    "uniform_float": batch.uniform((5, 7)),
    "uniform_double": batch.uniform((5, 7), np.float64),
    "normal_float": batch.normal((5, 7)),
    "normal_double": batch.normal((5, 7), np.float64),
    "integers": batch.integers(1000, (5, 7)),
    "integers_with_retries": batch.integers(3 << 61, (5, 7)),
    "host_bits": np.array([host.bits() for _ in range(333)], np.uint32),
    "host_uniform": np.array([host.uniform() for _ in range(1000)]),
    "host_uniform_float": np.array([host.uniform_float() for _ in range(1000)], np.float32),
    "host_normal": np.array([host.normal() for _ in range(1000)]),
    "host_integer": np.array([host.integer(3 << 61) for _ in range(1000)]),
}
host.shuffle(order)
expected["host_shuffle"] = np.array(order)

for name, values in expected.items():
    written = np.fromfile(folder / name, values.dtype)
    different = np.flatnonzero(written.view(np.uint8) != values.ravel().view(np.uint8))
    if len(written) != values.size or len(different) > 0:
        place = different[0] // values.itemsize if len(different) > 0 else "the end"
        sys.exit(f"{name} differs from philox.py at {place}")
print(sum(values.size for values in expected.values()), "values are equal")
