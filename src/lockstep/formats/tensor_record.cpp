#include "lockstep/formats/tensor_record.h"

#include <cstring>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr size_t kMaxDimensions = 64;  // as torch

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

[[noreturn]] void refuse(const TensorRecord& tensor, const std::string& why) {
  throw FormatError("a tensor of shape " + shape_text(tensor.shape) + " " +
                    why);
}

}  // namespace

std::shared_ptr<const ByteStorage> ByteStorage::own(
    std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return std::make_shared<const ByteStorage>(
      ByteStorage{.owner = std::move(owner), .bytes = view});
}

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
      throw FormatError("a tensor's shape " + shape_text(shape) +
                        " is impossible");
    }
    is_empty = is_empty || size == 0;
  }
  return is_empty ? 0 : count;
}

void check_bounds(const TensorRecord& tensor, int64_t storage_bytes) {
  if (tensor.shape.size() > kMaxDimensions ||
      tensor.shape.size() != tensor.strides.size()) {
    refuse(tensor, "has " + std::to_string(tensor.strides.size()) +
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
    refuse(tensor, "reaches outside its storage of " +
                       std::to_string(storage_bytes) + " bytes");
  }
}

TensorRecord make_record(DType dtype, std::vector<int64_t> shape,
                         std::shared_ptr<const ByteStorage> storage) {
  TensorRecord tensor{
      .dtype = dtype, .shape = std::move(shape), .storage = std::move(storage)};
  num_elements(tensor.shape);
  tensor.strides = contiguous_strides(tensor.shape);
  check_bounds(tensor, static_cast<int64_t>(tensor.storage->bytes.size()));
  return tensor;
}

bool is_contiguous(const TensorRecord& tensor) {
  const auto expected = contiguous_strides(tensor.shape);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected[i]) return false;
  }
  return true;
}

std::shared_ptr<const ByteStorage> packed_elements(const TensorRecord& tensor) {
  const auto size = static_cast<size_t>(size_bytes(tensor.dtype));
  const auto count = static_cast<size_t>(num_elements(tensor.shape)) * size;
  const auto first = static_cast<size_t>(tensor.offset) * size;
  if (count == 0) return ByteStorage::own({});
  if (is_contiguous(tensor)) {
    return std::make_shared<const ByteStorage>(
        ByteStorage{.owner = tensor.storage,
                    .bytes = tensor.storage->bytes.subspan(first, count)});
  }
  std::vector<std::byte> bytes(count);
  std::byte* to = bytes.data();
  pack(tensor, 0, tensor.storage->bytes.data() + first, to);
  return ByteStorage::own(std::move(bytes));
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace lockstep
