// Element-wise reductions of the ranks' values, in the order of Gloo's ring.
//
// Floating-point sums depend on their order. Gloo cuts a tensor of b bytes into
// one chunk per rank and adds the values of chunk c around the ring:
//   (((x[c-1] + x[c-2]) + x[c-3]) + ...) + x[c],  ranks modulo their number.
// Every element keeps that order here, whichever rank adds it, so that results
// are bit for bit those of Gloo and of Python's DDP. 16-bit floats are rounded
// after each addition, as Gloo does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::comm {

enum class Element : uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt8,
  kUint8,
  kInt32,
  kInt64,
};

enum class Reduction : uint8_t { kSum, kProduct, kMin, kMax };

size_t element_bytes(Element element);

// False for half precision on processors without its conversions (F16C).
bool can_reduce(Element element);

// How many bytes of a tensor Gloo's ring gives to each rank; the last ranks may
// get less, or nothing.
size_t ring_chunk_bytes(size_t tensor_bytes, size_t element_bytes,
                        size_t num_ranks);

// A range of a tensor, `bytes` long, that begins `offset` bytes into it.
struct ReduceRequest {
  Element element = Element::kFloat32;
  Reduction reduction = Reduction::kSum;
  size_t chunk_bytes = 0;  // ring_chunk_bytes() of the whole tensor.
  size_t offset = 0;
  size_t bytes = 0;
  // The range in each rank's tensor, in rank order.
  std::span<const std::byte* const> sources = {};
  // Where the result goes. A target may be a source, but not overlap one
  // otherwise.
  std::span<std::byte* const> targets = {};
};

void reduce_in_ring_order(const ReduceRequest& request);

}  // namespace lockstep::comm
