"""The frames of a .wandb file, with their check sums compared."""

import struct
import zlib

BLOCK = 32768
FULL, LAST = 1, 4


def payloads(data):
    assert data[:7] == b":W&B\xe1\xbe\x00", data[:7]
    at, record = 7, b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            assert data[at : at + left] == bytes(left), "filler must be zeros"
            at += left
            continue
        check_sum, length, kind = struct.unpack_from("<IHB", data, at)
        payload = data[at + 7 : at + 7 + length]
        assert zlib.crc32(data[at + 6 : at + 7] + payload) == check_sum, f"check sum at {at}"
        at += 7 + length
        record += payload
        if kind in (FULL, LAST):
            yield record
            record = b""
    assert not record, "the last record is cut off"
