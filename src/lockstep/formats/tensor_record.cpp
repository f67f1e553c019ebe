#include "lockstep/formats/tensor_record.h"

#include <cstring>
#include <utility>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "lockstep/formats/sign.h"

namespace lockstep::formats {
namespace {

// Copies the elements of dimension `dim` and those inside it.
void pack(const TensorRecord& tensor, size_t dim, const std::byte* from,
          std::byte*& to) {
  const auto size = static_cast<size_t>(size_bytes(tensor.dtype));
  if (dim == tensor.shape.size()) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  const int64_t step = tensor.strides[dim] * size_bytes(tensor.dtype);
  for (int64_t i = 0; i < tensor.shape[dim]; ++i) {
    pack(tensor, dim + 1, from + i * step, to);
  }
}

[[noreturn]] void refuse_tensor(const TensorRecord& tensor,
                                const std::string& why) {
  throw FormatError("a tensor of shape " + base::shape_text(tensor.shape) +
                    " " + why);
}

}  // namespace

std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int64_t num_elements(std::span<const int64_t> shape) {
  // The product without zeros must fit too: strides are made from it.
  int64_t count = 1;
  bool is_empty = false;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && __builtin_mul_overflow(count, size, &count))) {
      throw FormatError("a tensor's shape " + base::shape_text(shape) +
                        " is impossible");
    }
    is_empty = is_empty || size == 0;
  }
  return is_empty ? 0 : count;
}

void check_bounds(const TensorRecord& tensor, int64_t storage_bytes) {
  if (tensor.shape.size() > kMaxDimensions ||
      tensor.shape.size() != tensor.strides.size()) {
    refuse_tensor(tensor,
                  "has " + std::to_string(tensor.strides.size()) +
                      " strides; at most 64, one per dimension, are possible");
  }
  const int64_t capacity = storage_bytes / size_bytes(tensor.dtype);
  const bool is_empty = num_elements(tensor.shape) == 0;
  int64_t last = tensor.offset;
  bool is_sound = last >= 0 && last <= capacity;
  for (size_t i = 0; i < tensor.shape.size() && is_sound; ++i) {
    int64_t reach = 0;
    is_sound =
        tensor.strides[i] >= 0 &&
        (is_empty || (!__builtin_mul_overflow(tensor.shape[i] - 1,
                                              tensor.strides[i], &reach) &&
                      !__builtin_add_overflow(last, reach, &last)));
  }
  if (!is_sound || (!is_empty && last >= capacity)) {
    refuse_tensor(tensor, "reaches outside its storage of " +
                              std::to_string(storage_bytes) + " bytes");
  }
}

TensorRecord make_record(DType dtype, std::vector<int64_t> shape,
                         std::shared_ptr<const ByteStorage> storage) {
  TensorRecord tensor{
      .dtype = dtype, .shape = std::move(shape), .storage = std::move(storage)};
  num_elements(tensor.shape);
  tensor.strides = contiguous_strides(tensor.shape);
  check_bounds(tensor, static_cast<int64_t>(tensor.storage->size()));
  return tensor;
}

bool is_packed(const TensorRecord& tensor) {
  if (tensor.is_conjugated || tensor.is_negated) return false;
  const auto expected = contiguous_strides(tensor.shape);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected[i]) return false;
  }
  return true;
}

size_t num_bytes(const TensorRecord& tensor) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(num_elements(tensor.shape),
                             size_bytes(tensor.dtype), &bytes)) {
    refuse_tensor(tensor, "has more bytes than 64 bits can count");
  }
  return static_cast<size_t>(bytes);
}

std::shared_ptr<const ByteStorage> packed_elements(const TensorRecord& tensor) {
  const size_t count = num_bytes(tensor);
  const size_t first = static_cast<size_t>(tensor.offset) *
                       static_cast<size_t>(size_bytes(tensor.dtype));
  if (count == 0) return ByteStorage::own({});
  const ByteStorage& storage = *tensor.storage;
  if (is_packed(tensor) && storage.is_in_memory()) {
    return ByteStorage::view(storage.bytes().subspan(first, count),
                             tensor.storage);
  }
  std::vector<std::byte> bytes(count);
  if (is_packed(tensor)) {
    storage.read(first, bytes);
    return ByteStorage::own(std::move(bytes));
  }
  std::vector<std::byte> whole(storage.is_in_memory() ? 0 : storage.size());
  if (!storage.is_in_memory()) storage.read(0, whole);
  std::byte* to = bytes.data();
  pack(tensor, 0,
       (storage.is_in_memory() ? storage.bytes().data() : whole.data()) + first,
       to);
  if (tensor.is_conjugated) conjugate(tensor.dtype, bytes);
  if (tensor.is_negated) negate(tensor.dtype, bytes);
  return ByteStorage::own(std::move(bytes));
}

}  // namespace lockstep::formats
