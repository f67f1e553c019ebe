"""The project's random generator in numpy: equal bits to src/lockstep/tensor, written apart.

seeds are uint64; sample_seed() gives that of a sample. SampleRandom and RandomStream have the
conventions of the classes of the same name: key = seed, counter = (block, stream).
"""
import math

import numpy as np

U32 = np.uint64(0xFFFFFFFF)
FIRST_SAMPLE_STREAM = 1 << 32


def philox4x32_10(counter, key):
    """Four and two arrays of 32-bit words, held as uint64; returns four."""
    c, k = [np.asarray(w, np.uint64) for w in counter], [np.asarray(w, np.uint64) for w in key]
    for _ in range(10):
        even, odd = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(odd >> np.uint64(32)) ^ c[1] ^ k[0], odd & U32, (even >> np.uint64(32)) ^ c[3] ^ k[1], even & U32]
        k = [(k[0] + np.uint64(0x9E3779B9)) & U32, (k[1] + np.uint64(0xBB67AE85)) & U32]
    return c


def blocks(seeds, stream, numbers):
    """uint64 words [..., 4] of the blocks; seeds and numbers broadcast."""
    seeds, numbers = np.broadcast_arrays(np.asarray(seeds, np.uint64), np.asarray(numbers, np.uint64))
    counter = (numbers & U32, numbers >> np.uint64(32), stream & 0xFFFFFFFF, stream >> 32)
    return np.stack(np.broadcast_arrays(*philox4x32_10(counter, (seeds & U32, seeds >> np.uint64(32)))), -1)


def double_words(words):
    return words[..., 0::2] | words[..., 1::2] << np.uint64(32)


def mix_bits(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def sample_seed(seed, epoch, index):
    golden = 0x9E3779B97F4A7C15
    state = mix_bits((seed + golden) % 2**64)
    state = mix_bits(state ^ (epoch + golden) % 2**64)
    return mix_bits(state ^ (index + golden) % 2**64)


def log_of_unit(x):
    m, exponent = np.frexp(x)
    small = m < math.sqrt(0.5)
    m, exponent = np.where(small, 2 * m, m), exponent - small
    s = (m - 1) / (m + 1)
    z = s * s
    total = np.full_like(x, 1 / 21)
    for n in range(19, 0, -2):
        total = 1 / n + z * total
    return exponent * math.log(2) + 2 * s * total


def normal_pairs(uniform, position, octant):
    """[..., 2] numbers by Box-Muller, in the very operations of normal_pair.h."""
    angle = position * (math.pi / 4)
    z = angle * angle
    cosine, sine = np.ones_like(z), np.ones_like(z)
    for n in range(16, 0, -2):
        cosine = 1 - z * (1 / (n * (n - 1))) * cosine
        sine = 1 - z * (1 / (n * (n + 1))) * sine
    radius = np.sqrt(-2 * log_of_unit(uniform))
    x, y = radius * cosine, radius * (angle * sine)
    bit = [(octant >> np.uint64(i) & np.uint64(1)) != 0 for i in range(3)]
    first, second = np.where(bit[0], y, x), np.where(bit[0], x, y)
    return np.stack([np.where(bit[1], -first, first), np.where(bit[2], -second, second)], -1)


def normals_from_32_bits(words):
    distance, direction = words[..., 0::2], words[..., 1::2]
    position = ((direction >> np.uint64(3)).astype(float) + 0.5) * 2.0**-29
    return normal_pairs((distance.astype(float) + 1) * 2.0**-32, position, direction)


def normals_from_64_bits(words):
    distance, direction = double_words(words)[..., 0], double_words(words)[..., 1]
    position = ((direction >> np.uint64(14)).astype(float) + 0.5) * 2.0**-50
    uniform = ((distance >> np.uint64(11)) + np.uint64(1)).astype(float) * 2.0**-53
    return normal_pairs(uniform, position, direction)


def unit_floats(words):
    return (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def unit_doubles(words):
    return (words >> np.uint64(11)).astype(float) * 2.0**-53


def last_fair_bits(below):
    return 2**64 - 1 - 2**64 % below


class SampleRandom:
    def __init__(self, seeds):
        self.seeds = np.asarray(seeds, np.uint64)
        self.next_stream = FIRST_SAMPLE_STREAM

    def _rows(self, shape, per_block, values_of):
        num_values = math.prod(shape)
        numbers = np.arange(-(-num_values // per_block), dtype=np.uint64)
        values = values_of(lambda offset: blocks(self.seeds[:, None], self.next_stream, numbers + np.uint64(offset)))
        self.next_stream += 1
        values = values.reshape(len(self.seeds), len(numbers) * per_block)
        return values[:, :num_values].reshape(len(self.seeds), *shape)

    def uniform(self, shape, dtype=np.float32):
        if dtype == np.float64:
            return self._rows(shape, 2, lambda words: unit_doubles(double_words(words(0))))
        return self._rows(shape, 4, lambda words: unit_floats(words(0)))

    def normal(self, shape, dtype=np.float32):
        if dtype == np.float64:
            return self._rows(shape, 2, lambda words: normals_from_64_bits(words(0)))
        return self._rows(shape, 4, lambda words: normals_from_32_bits(words(0)).astype(np.float32))

    def integers(self, below, shape):
        def draw(words):
            bits, attempt = double_words(words(0)), 0
            while (unfair := bits > np.uint64(last_fair_bits(below))).any():
                attempt += 1
                bits = np.where(unfair, double_words(words(attempt << 48)), bits)
            return (bits % np.uint64(below)).astype(np.int64)

        return self._rows(shape, 2, draw)


class RandomStream:
    def __init__(self, seed, stream=0):
        self.seed, self.stream, self.num_words = seed, stream, 0

    def bits(self):
        number, place = divmod(self.num_words, 4)
        self.num_words += 1
        return int(blocks(self.seed, self.stream, number)[place])

    def double_bits(self):
        low = self.bits()
        return low | self.bits() << 32

    def uniform(self):
        return (self.double_bits() >> 11) * 2.0**-53

    def uniform_float(self):
        return (self.bits() >> 8) * 2.0**-24

    def normal(self):
        words = np.array([self.bits() for _ in range(4)], np.uint64)
        return float(normals_from_64_bits(words)[0])

    def integer(self, below):
        while (bits := self.double_bits()) > last_fair_bits(below):
            pass
        return bits % below

    def chance(self, p):
        return self.uniform() < p

    def shuffle(self, values):
        for left in range(len(values), 1, -1):
            chosen = self.integer(left)
            values[left - 1], values[chosen] = values[chosen], values[left - 1]
