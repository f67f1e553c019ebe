// How words of the generator become the values of a tensor: shared by the CPU
// and the CUDA side of SampleRandom.
//
// Each kind of draw defines how many values one block of Philox gives. Value i
// of a sample comes from block i / kPerBlock, whatever the tensor's size.
#pragma once

#include <cstdint>

#include "lockstep/tensor/normal_pair.h"
#include "lockstep/tensor/philox.h"

namespace lockstep::tensor {

// 24 bits: a float holds them exactly and is never rounded up to 1.
LOCKSTEP_HOST_DEVICE constexpr float unit_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

LOCKSTEP_HOST_DEVICE constexpr double unit_double(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Two words of a block as one; half is 0 or 1.
LOCKSTEP_HOST_DEVICE constexpr uint64_t double_word(const PhiloxBlock& block,
                                                    int half) {
  return block.words[2 * half] | uint64_t{block.words[2 * half + 1]} << 32;
}

// The largest 64-bit value that is reduced modulo `below`. Those beyond, less
// than one whole round of remainders, are drawn again: every integer is equally
// likely.
LOCKSTEP_HOST_DEVICE constexpr uint64_t last_fair_bits(uint64_t below) {
  return ~((0 - below) % below);
}

struct UniformFloatDraw {
  using Value = float;
  static constexpr int kPerBlock = 4;
  LOCKSTEP_HOST_DEVICE void operator()(uint64_t seed, uint64_t stream,
                                       uint64_t block, Value* values) const {
    const PhiloxBlock bits = philox_block(seed, stream, block);
    for (int i = 0; i < 4; ++i) values[i] = unit_float(bits.words[i]);
  }
};

struct UniformDoubleDraw {
  using Value = double;
  static constexpr int kPerBlock = 2;
  LOCKSTEP_HOST_DEVICE void operator()(uint64_t seed, uint64_t stream,
                                       uint64_t block, Value* values) const {
    const PhiloxBlock bits = philox_block(seed, stream, block);
    for (int i = 0; i < 2; ++i) values[i] = unit_double(double_word(bits, i));
  }
};

struct NormalFloatDraw {
  using Value = float;
  static constexpr int kPerBlock = 4;
  LOCKSTEP_HOST_DEVICE void operator()(uint64_t seed, uint64_t stream,
                                       uint64_t block, Value* values) const {
    const PhiloxBlock bits = philox_block(seed, stream, block);
    for (int i = 0; i < 4; i += 2) {
      const NormalPair pair = normal_pair(bits.words[i], bits.words[i + 1]);
      values[i] = static_cast<float>(pair.first);
      values[i + 1] = static_cast<float>(pair.second);
    }
  }
};

struct NormalDoubleDraw {
  using Value = double;
  static constexpr int kPerBlock = 2;
  LOCKSTEP_HOST_DEVICE void operator()(uint64_t seed, uint64_t stream,
                                       uint64_t block, Value* values) const {
    const PhiloxBlock bits = philox_block(seed, stream, block);
    const NormalPair pair =
        normal_pair(double_word(bits, 0), double_word(bits, 1));
    values[0] = pair.first;
    values[1] = pair.second;
  }
};

struct IntegerDraw {
  using Value = int64_t;
  static constexpr int kPerBlock = 2;
  uint64_t below;

  LOCKSTEP_HOST_DEVICE void operator()(uint64_t seed, uint64_t stream,
                                       uint64_t block, Value* values) const {
    // Further attempts count from bit 48 on: no sample has 2^49 values.
    constexpr uint64_t kNextAttempt = uint64_t{1} << 48;
    for (int i = 0; i < 2; ++i) {
      uint64_t bits = double_word(philox_block(seed, stream, block), i);
      for (uint64_t retry = block + kNextAttempt; bits > last_fair_bits(below);
           retry += kNextAttempt) {
        bits = double_word(philox_block(seed, stream, retry), i);
      }
      values[i] = static_cast<int64_t>(bits % below);
    }
  }
};

enum class DrawKind {
  kUniformFloat,
  kUniformDouble,
  kNormalFloat,
  kNormalDouble,
  kInteger,
};

// One call of SampleRandom: num_values values for each of num_samples seeds.
struct DrawRequest {
  DrawKind kind = DrawKind::kUniformFloat;
  int64_t below = 1;  // for kInteger
  uint64_t stream = 0;
  const int64_t* seeds = nullptr;
  int64_t num_samples = 0;
  int64_t num_values = 0;  // of one sample
  void* out = nullptr;     // num_samples * num_values of the kind's Value
};

// Calls fill(draw) with the draw of the request's kind.
template <typename Fill>
void with_draw(const DrawRequest& request, const Fill& fill) {
  switch (request.kind) {
    case DrawKind::kUniformFloat: return fill(UniformFloatDraw{});
    case DrawKind::kUniformDouble: return fill(UniformDoubleDraw{});
    case DrawKind::kNormalFloat: return fill(NormalFloatDraw{});
    case DrawKind::kNormalDouble: return fill(NormalDoubleDraw{});
    case DrawKind::kInteger:
      return fill(IntegerDraw{static_cast<uint64_t>(request.below)});
  }
}

template <typename Draw>
LOCKSTEP_HOST_DEVICE int64_t blocks_per_sample(const DrawRequest& request) {
  return (request.num_values + Draw::kPerBlock - 1) / Draw::kPerBlock;
}

// Writes the values of one block of one sample.
template <typename Draw>
LOCKSTEP_HOST_DEVICE void fill_block(const DrawRequest& request,
                                     const Draw& draw, int64_t sample,
                                     int64_t block) {
  using Number = typename Draw::Value;
  Number values[Draw::kPerBlock];
  draw(static_cast<uint64_t>(request.seeds[sample]), request.stream,
       static_cast<uint64_t>(block), values);
  const int64_t first = block * Draw::kPerBlock;
  Number* out =
      static_cast<Number*>(request.out) + sample * request.num_values + first;
  for (int i = 0; i < Draw::kPerBlock; ++i) {
    if (first + i < request.num_values) out[i] = values[i];
  }
}

}  // namespace lockstep::tensor
