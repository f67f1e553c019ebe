"""Reads a batch of CIFAR-10 as torchvision does, checks it, and writes it again with this numpy.

Usage: cifar10_batches.py BATCH COUNT FOLDER
"""
import pickle
import sys

import numpy


def expected_pixels(index):
    i = numpy.arange(3072)
    return ((index * 37 + i * (index % 5 + 1) + i // 256) % 256).astype(numpy.uint8)


def main():
    path, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "rb") as file:
        batch = pickle.load(file, encoding="latin1")
    assert batch["data"].dtype == numpy.uint8 and batch["data"].shape == (count, 3072)
    assert batch["labels"] == [i % 10 for i in range(count)]
    for i in range(count):
        assert (batch["data"][i] == expected_pixels(i)).all(), i
    for protocol in (2, 3, 4):
        with open(f"{folder}/data_batch_{protocol}", "wb") as file:
            pickle.dump(batch, file, protocol=protocol)


if __name__ == "__main__":
    main()
