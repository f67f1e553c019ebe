#include "lockstep/comm/shared_sum.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

namespace lockstep::comm {
namespace {

// Results pass through a block that stays in the first-level cache.
constexpr size_t kBlockBytes = 8192;
constexpr size_t kGlooSegmentBytes = size_t{1} << 20;

#define LOCKSTEP_INLINE [[gnu::always_inline]] inline
// Processors since Haswell and Zen have all of these.
#define LOCKSTEP_AVX2 [[gnu::target("avx2,f16c,fma")]]

constexpr size_t divide_up(size_t value, size_t by) {
  return (value + by - 1) / by;
}

constexpr size_t round_up(size_t value, size_t to) {
  return divide_up(value, to) * to;
}

// 16-bit floats: the storage, and the float they stand for.
struct BFloat16 {
  uint16_t bits;
};

struct Float16 {
  uint16_t bits;
};

template <typename Storage>
LOCKSTEP_INLINE Storage load(Storage value) {
  return value;
}

LOCKSTEP_INLINE float load(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

template <typename Storage>
LOCKSTEP_INLINE void store(Storage value, Storage& to) {
  to = value;
}

// Rounds to nearest even; a NaN becomes c10's.
LOCKSTEP_INLINE void store(float value, BFloat16& to) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  to.bits = static_cast<uint16_t>(is_nan ? 0x7FC0 : rounded);
}

// Gloo calls reduce(own value, what came around the ring); min and max are
// those of std, so that equal zeros and NaN come out alike.
template <Reduction Op, typename Number>
LOCKSTEP_INLINE Number combine(Number own, Number ring) {
  using Wide =
      std::conditional_t<std::is_integral_v<Number>, std::make_unsigned<Number>,
                         std::type_identity<Number>>::type;
  if constexpr (Op == Reduction::kSum) {
    return static_cast<Number>(static_cast<Wide>(own) +
                               static_cast<Wide>(ring));
  } else if constexpr (Op == Reduction::kProduct) {
    return static_cast<Number>(static_cast<Wide>(own) *
                               static_cast<Wide>(ring));
  } else if constexpr (Op == Reduction::kMin) {
    return ring < own ? ring : own;
  } else {
    return own < ring ? ring : own;
  }
}

// result[i] = combine(own[i], ring[i]). `result` may be `own` or `ring`: some
// elements at a time pass through variables, so that the compiler uses vectors
// all the same.
template <Reduction Op, typename Storage>
LOCKSTEP_INLINE void combine_block(const Storage* own, const Storage* ring,
                                   Storage* result, size_t count) {
  constexpr size_t kStride = 128 / sizeof(Storage);
  const size_t whole = count / kStride * kStride;
  for (size_t i = 0; i < whole; i += kStride) {
    Storage a[kStride];
    Storage b[kStride];
    std::memcpy(a, own + i, sizeof(a));
    std::memcpy(b, ring + i, sizeof(b));
    for (size_t j = 0; j < kStride; ++j) {
      store(combine<Op>(load(a[j]), load(b[j])), a[j]);
    }
    std::memcpy(result + i, a, sizeof(a));
  }
  for (size_t i = whole; i < count; ++i) {
    store(combine<Op>(load(own[i]), load(ring[i])), result[i]);
  }
}

// The conversions of half precision are instructions: there is no plain loop
// for the compiler to vectorize.
constexpr size_t kLanes = 8;

template <Reduction Op>
LOCKSTEP_AVX2 inline void combine_lanes(const Float16* own, const Float16* ring,
                                        Float16* result) {
  const __m256 x =
      _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(own)));
  const __m256 y =
      _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(ring)));
  __m256 z = _mm256_setzero_ps();
  if constexpr (Op == Reduction::kSum) {
    z = _mm256_add_ps(x, y);
  } else if constexpr (Op == Reduction::kProduct) {
    z = _mm256_mul_ps(x, y);
  } else if constexpr (Op == Reduction::kMin) {
    z = _mm256_blendv_ps(x, y, _mm256_cmp_ps(y, x, _CMP_LT_OQ));
  } else {
    z = _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(result),
                   _mm256_cvtps_ph(z, _MM_FROUND_TO_NEAREST_INT));
}

template <Reduction Op>
LOCKSTEP_AVX2 void combine_halves(const Float16* own, const Float16* ring,
                                  Float16* result, size_t count) {
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    combine_lanes<Op>(own + i, ring + i, result + i);
  }
  if (whole == count) return;
  std::array<Float16, kLanes> a{};
  std::array<Float16, kLanes> b{};
  std::copy(own + whole, own + count, a.begin());
  std::copy(ring + whole, ring + count, b.begin());
  combine_lanes<Op>(a.data(), b.data(), a.data());
  std::copy(a.begin(), a.begin() + (count - whole), result + whole);
}

template <Reduction Op, typename Storage>
void combine_plain(const Storage* own, const Storage* ring, Storage* result,
                   size_t count) {
  combine_block<Op>(own, ring, result, count);
}

template <Reduction Op, typename Storage>
LOCKSTEP_AVX2 void combine_avx2(const Storage* own, const Storage* ring,
                                Storage* result, size_t count) {
  combine_block<Op>(own, ring, result, count);
}

using Combine = void (*)(const std::byte*, const std::byte*, std::byte*,
                         size_t);

template <auto Function, typename Storage>
void call(const std::byte* own, const std::byte* ring, std::byte* result,
          size_t count) {
  Function(reinterpret_cast<const Storage*>(own),
           reinterpret_cast<const Storage*>(ring),
           reinterpret_cast<Storage*>(result), count);
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("fma");
}

template <Reduction Op, typename Storage>
Combine find_combine() {
  if constexpr (std::is_same_v<Storage, Float16>) {
    return &call<&combine_halves<Op>, Float16>;
  } else {
    return has_avx2() ? &call<&combine_avx2<Op, Storage>, Storage>
                      : &call<&combine_plain<Op, Storage>, Storage>;
  }
}

template <typename Storage>
Combine find_combine(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return find_combine<Reduction::kSum, Storage>();
    case Reduction::kProduct:
      return find_combine<Reduction::kProduct, Storage>();
    case Reduction::kMin: return find_combine<Reduction::kMin, Storage>();
    case Reduction::kMax: return find_combine<Reduction::kMax, Storage>();
  }
  return nullptr;
}

Combine find_combine(Element element, Reduction reduction) {
  switch (element) {
    case Element::kFloat64: return find_combine<double>(reduction);
    case Element::kFloat32: return find_combine<float>(reduction);
    case Element::kFloat16: return find_combine<Float16>(reduction);
    case Element::kBFloat16: return find_combine<BFloat16>(reduction);
    case Element::kInt8: return find_combine<int8_t>(reduction);
    case Element::kUint8: return find_combine<uint8_t>(reduction);
    case Element::kInt32: return find_combine<int32_t>(reduction);
    case Element::kInt64: return find_combine<int64_t>(reduction);
  }
  return nullptr;
}

// One range within one chunk, a block at a time.
void reduce_part(const ReduceRequest& request, Combine combine, size_t begin,
                 size_t bytes, size_t chunk) {
  const size_t num_ranks = request.sources.size();
  const size_t width = element_bytes(request.element);
  const auto source = [&](size_t turn, size_t at) {
    return request.sources[(chunk + 2 * num_ranks - turn) % num_ranks] + at;
  };
  alignas(64) std::array<std::byte, kBlockBytes> block;
  for (size_t at = begin; at < begin + bytes; at += kBlockBytes) {
    const size_t length = std::min(kBlockBytes, begin + bytes - at);
    // The last result goes to a target, which may be one of the sources.
    const std::byte* ring = source(1, at);
    for (size_t turn = 2; turn <= num_ranks; ++turn) {
      std::byte* result =
          turn == num_ranks ? request.targets[0] + at : block.data();
      combine(source(turn, at), ring, result, length / width);
      ring = result;
    }
    for (std::byte* target : request.targets.subspan(1)) {
      std::memcpy(target + at, ring, length);
    }
  }
}

}  // namespace

size_t element_bytes(Element element) {
  switch (element) {
    case Element::kFloat64:
    case Element::kInt64: return 8;
    case Element::kFloat32:
    case Element::kInt32: return 4;
    case Element::kFloat16:
    case Element::kBFloat16: return 2;
    case Element::kInt8:
    case Element::kUint8: return 1;
  }
  return 1;
}

bool can_reduce(Element element) {
  return element != Element::kFloat16 || has_avx2();
}

size_t ring_chunk_bytes(size_t tensor_bytes, size_t element_bytes,
                        size_t num_ranks) {
  const size_t num_segments = round_up(
      std::max(divide_up(tensor_bytes, kGlooSegmentBytes), 2 * num_ranks),
      num_ranks);
  const size_t segment_bytes =
      round_up(divide_up(tensor_bytes, num_segments), element_bytes);
  return num_segments / num_ranks * segment_bytes;
}

void reduce_in_ring_order(const ReduceRequest& request) {
  const Combine combine = find_combine(request.element, request.reduction);
  size_t done = 0;
  while (done < request.bytes) {
    const size_t at = request.offset + done;
    const size_t chunk = at / request.chunk_bytes;
    const size_t left_in_chunk = (chunk + 1) * request.chunk_bytes - at;
    const size_t bytes = std::min(left_in_chunk, request.bytes - done);
    reduce_part(request, combine, done, bytes, chunk);
    done += bytes;
  }
}

}  // namespace lockstep::comm
