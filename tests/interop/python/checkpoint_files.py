"""Writes the files that C++ has to read, and checks those that C++ wrote.

usage: checkpoint_files.py write|check FOLDER
content() here and in checkpoint_interop_test.cpp are the same values.
"""

import argparse
import collections
import pathlib
import sys

import numpy
import safetensors.torch
import torch

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32,
    torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
BIG = 2**100 + 7


def tensor_of(dtype):
    return torch.arange(6, dtype=torch.float32).reshape(2, 3).to(dtype)


def content():
    shared = torch.arange(4, dtype=torch.float32)
    return {
        "dtypes": {str(dtype).removeprefix("torch."): tensor_of(dtype) for dtype in DTYPES},
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "transposed": torch.arange(6, dtype=torch.int64).reshape(2, 3).t(),
        "expanded": torch.tensor([7.0]).expand(3),
        "tied": [shared, shared, shared[1:3]],
        "nested": {"list": [1, [2, []], {}], "tuple": (1, (), (2.5, "x")), 3: "int key"},
        "none": None,
        "bools": [True, False],
        "ints": [0, 255, 256, 65536, -1, -(2**31), 2**31, -(2**63), 2**63 - 1],
        "big": [2**63, -(2**63) - 1, BIG, -BIG],
        "floats": [0.1, -0.0, 1e308, float("inf")],
        "text": "gr\u00fc\u00df \u4f60\u597d",
        "bytes": bytes(range(256)),
    }


def assert_equal(a, b, path=""):
    assert type(a) is type(b) or isinstance(a, dict) and isinstance(b, dict), (path, a, b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride(), (path, a, b)
        if a.dtype.is_floating_point and a.dtype.itemsize == 1:
            a, b = a.view(torch.uint8), b.view(torch.uint8)
        assert torch.equal(a, b), (path, a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b), (path, list(a), list(b))
        for key in a:
            assert_equal(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), (path, a, b)
        for i, (x, y) in enumerate(zip(a, b)):
            assert_equal(x, y, f"{path}.{i}")
    else:
        assert repr(a) == repr(b), (path, a, b)


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


def named_arrays():
    tensors = {f"a_{d}": tensor_of(d) for d in DTYPES if d not in (torch.complex128,)}
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.empty(0, 3)
    return tensors


def numpy_arrays():
    arrays = {
        str(d).removeprefix("torch."): tensor_of(d).numpy()
        for d in DTYPES
        if d is not torch.bfloat16 and not str(d).startswith("torch.float8")
    }
    arrays["scalar"] = numpy.float64(2.5)
    arrays["empty"] = numpy.zeros((0, 3), numpy.float32)
    return arrays


def lazy_tensors():
    """Tensors whose sign torch has put off: a bit says it, not the storage."""
    z = torch.complex(torch.arange(6.0), torch.arange(1.0, 7.0)).reshape(2, 3)
    tensors = {
        "plain": z,
        "conj": z.conj(),
        "transposed": z.conj().t(),
        "neg": z.clone().conj().imag,  # torch saves a storage as one dtype only
        "both": torch._neg_view(z.to(torch.complex128).conj())[1],
    }
    assert tensors["conj"].is_conj() and tensors["neg"].is_neg() and tensors["both"].is_neg()
    return tensors


def write(folder):
    torch.save(content(), folder / "zip.pt")
    torch.save(content(), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(content(), folder / "protocol4.pt", pickle_protocol=4)
    state = network().state_dict()
    assert isinstance(state, collections.OrderedDict) and hasattr(state, "_metadata")
    torch.save(state, folder / "state_dict.pt")
    wrapped = {"module." + name: tensor for name, tensor in state.items()}
    unknown = {
        "args": argparse.Namespace(lr=0.1, nested=argparse.Namespace(x=1)),
        "model": wrapped,
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "best": numpy.float64(0.5),
        "size": torch.Size([2, 3]),
        "sets": {1},
        "counts": collections.defaultdict(list, a=[1]),
        "dtype": torch.float32,
        "epoch": 7,
    }
    torch.save(unknown, folder / "unknown.pt")
    torch.save(network(), folder / "module.pt")
    for name, is_zip in (("lazy.pt", True), ("lazy_legacy.pt", False)):
        torch.save(lazy_tensors(), folder / name, _use_new_zipfile_serialization=is_zip)
    rows = torch.arange(20000, dtype=torch.float32).reshape(20000, 1)
    torch.save({f"layers.{i}.attention.weight": row for i, row in enumerate(rows)}, folder / "many.pt")
    tensors = named_arrays()
    safetensors.torch.save_file(tensors, folder / "python.safetensors", {"format": "pt"})
    numpy.savez(folder / "plain.npz", **numpy_arrays())
    numpy.savez_compressed(folder / "compressed.npz", **numpy_arrays())
    numpy.savez(folder / "fortran.npz", a=numpy.asfortranarray(numpy.arange(6).reshape(2, 3)))


def check_optimizer(folder):
    net = network()
    optimizer = torch.optim.AdamW(net.parameters())
    loaded = torch.load(folder / "optimizer.pt", weights_only=True)
    optimizer.load_state_dict(loaded)
    for i, parameter in enumerate(net.parameters()):
        state = optimizer.state[parameter]
        assert state["step"].item() == 5
        assert torch.equal(state["exp_avg"], torch.full_like(parameter, i))
    group = optimizer.param_groups[0]
    assert group["lr"] == 0.25 and group["betas"] == (0.5, 0.75)
    net(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def check(folder):
    lazy = torch.load(folder / "ours_lazy.pt", weights_only=True)
    for name, tensor in lazy_tensors().items():
        assert torch.equal(lazy[name].resolve_conj(), tensor.resolve_conj().resolve_neg()), name
    for mmap in (False, True):
        loaded = torch.load(folder / "ours.pt", weights_only=True, mmap=mmap)
        assert_equal(content(), loaded)
        tied = loaded["tied"]
        tied[0][1] = 99
        assert tied[1][1] == 99 and tied[2][0] == 99, "tied tensors share memory"
    net = network()
    state = torch.load(folder / "module_state.pt", weights_only=True)
    net.load_state_dict(state)
    assert all(torch.equal(t, torch.full_like(t, 2)) for t in net.state_dict().values())
    check_optimizer(folder)
    ours = safetensors.torch.load_file(folder / "ours.safetensors")
    assert_equal(dict(sorted(named_arrays().items())), dict(sorted(ours.items())))
    with safetensors.safe_open(folder / "ours.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
    arrays = numpy.load(folder / "ours.npz")
    expected = numpy_arrays()
    assert sorted(arrays) == sorted(expected)
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape, name
        assert numpy.array_equal(arrays[name], array), name


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
