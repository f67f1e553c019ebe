// A tensor as files know it: element type, shape, strides, and bytes that other
// tensors may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/formats/byte_storage.h"
#include "lockstep/formats/dtype.h"

namespace lockstep::formats {

// Tensors that point to one ByteStorage share memory, as tied weights do.
struct TensorRecord {
  DType dtype = DType::kFloat32;
  // Lazy flags of torch: the values are the conjugate or the negative of those
  // in the storage.
  bool is_conjugated = false;
  bool is_negated = false;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // in elements
  std::shared_ptr<const ByteStorage> storage = {};
  int64_t offset = 0;  // of the first element, in elements
};

using NamedTensors = std::vector<std::pair<std::string, TensorRecord>>;

constexpr size_t kMaxDimensions = 64;  // As in torch.

// Row-major strides.
std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape);

// Throws FormatError for a negative or an overflowing shape.
int64_t num_elements(std::span<const int64_t> shape);

// Throws FormatError when the tensor reaches outside a storage of this size, or
// its shape and strides make no sense. All other functions expect that it was
// called.
void check_bounds(const TensorRecord& tensor, int64_t storage_bytes);

// A row-major tensor over the storage's first bytes. Throws as check_bounds().
TensorRecord make_record(DType dtype, std::vector<int64_t> shape,
                         std::shared_ptr<const ByteStorage> storage);

// Whether the storage holds the elements as they are, in row-major order.
bool is_packed(const TensorRecord& tensor);

// The bytes of all elements, also of those that lie at one place. Throws
// FormatError when they cannot be counted.
size_t num_bytes(const TensorRecord& tensor);

// The elements in row-major order, in memory: a view of the storage when they
// lie there so, otherwise a copy. Throws as ByteStorage::read().
std::shared_ptr<const ByteStorage> packed_elements(const TensorRecord& tensor);

}  // namespace lockstep::formats
