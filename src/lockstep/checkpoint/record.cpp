#include "lockstep/checkpoint/record.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/storage_read.h"
#include "lockstep/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::array<std::pair<formats::DType, at::ScalarType>, 17> kTypes = {{
    {formats::DType::kFloat64, at::kDouble},
    {formats::DType::kFloat32, at::kFloat},
    {formats::DType::kFloat16, at::kHalf},
    {formats::DType::kBFloat16, at::kBFloat16},
    {formats::DType::kInt64, at::kLong},
    {formats::DType::kInt32, at::kInt},
    {formats::DType::kInt16, at::kShort},
    {formats::DType::kInt8, at::kChar},
    {formats::DType::kUInt8, at::kByte},
    {formats::DType::kBool, at::kBool},
    {formats::DType::kComplex64, at::kComplexFloat},
    {formats::DType::kComplex128, at::kComplexDouble},
    {formats::DType::kUInt16, at::kUInt16},
    {formats::DType::kUInt32, at::kUInt32},
    {formats::DType::kUInt64, at::kUInt64},
    {formats::DType::kFloat8E4M3, at::kFloat8_e4m3fn},
    {formats::DType::kFloat8E5M2, at::kFloat8_e5m2},
}};

formats::DType to_dtype(at::ScalarType type) {
  const auto* found = std::ranges::find(
      kTypes, type, &std::pair<formats::DType, at::ScalarType>::second);
  if (found == kTypes.end()) {
    throw ConfigError("tensors of type " + std::string(c10::toString(type)) +
                      " cannot be saved; convert them first");
  }
  return found->first;
}

}  // namespace

at::ScalarType to_scalar_type(formats::DType dtype) {
  return std::ranges::find(kTypes, dtype,
                           &std::pair<formats::DType, at::ScalarType>::first)
      ->second;
}

at::Tensor copy_of(const formats::TensorRecord& record) {
  at::Tensor copy =
      at::empty(record.shape, at::TensorOptions(to_scalar_type(record.dtype)));
  const std::span<std::byte> to(
      static_cast<std::byte*>(copy.mutable_data_ptr()), copy.nbytes());
  if (formats::is_packed(record)) {
    record.storage->read(
        static_cast<size_t>(record.offset * formats::size_bytes(record.dtype)),
        to);
  } else {
    std::ranges::copy(formats::packed_elements(record)->bytes(), to.begin());
  }
  return copy;
}

formats::Value to_value(const Tree& tree) {
  std::unordered_map<const void*, std::shared_ptr<const formats::ByteStorage>>
      storages;
  return formats::map_tensors<formats::TensorRecord>(
      tree, [&](const at::Tensor& tensor) {
        LOCKSTEP_CHECK(tensor.is_cpu(), "only CPU tensors have bytes to write");
        const c10::Storage& storage = tensor.storage();
        auto& shared = storages[storage.unsafeGetStorageImpl()];
        if (shared == nullptr) {
          shared = formats::ByteStorage::view(
              {static_cast<const std::byte*>(storage.data()), storage.nbytes()},
              std::make_shared<const c10::Storage>(storage));
        }
        return formats::TensorRecord{.dtype = to_dtype(tensor.scalar_type()),
                                     .shape = tensor.sizes().vec(),
                                     .strides = tensor.strides().vec(),
                                     .storage = shared,
                                     .offset = tensor.storage_offset()};
      });
}

Tree to_tree(const formats::Value& value) {
  std::unordered_map<const void*, c10::Storage> storages;
  std::vector<StorageRead> reads;
  Tree tree = formats::map_tensors<at::Tensor>(
      value, [&](const formats::TensorRecord& record) {
        if (record.is_conjugated || record.is_negated) {
          record.storage->check();
          return copy_of(record);
        }
        auto& storage = storages[record.storage.get()];
        if (!storage) {
          const auto size = static_cast<int64_t>(record.storage->size());
          storage = at::empty({size}, at::kByte).storage();
          reads.push_back(
              {.from = record.storage.get(),
               .to = {static_cast<std::byte*>(storage.mutable_data()),
                      record.storage->size()}});
        }
        at::Tensor tensor = at::empty({0}, to_scalar_type(record.dtype));
        return tensor.set_(storage, record.offset, record.shape,
                           record.strides);
      });
  read_all(reads);
  return tree;
}

}  // namespace lockstep::checkpoint
