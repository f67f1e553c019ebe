// The element types of tensors in files, and their names in each format.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::formats {

enum class DType : uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex64,
  kComplex128,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8E4M3,
  kFloat8E5M2,
};

// An empty name: the format does not know the type.
struct DTypeInfo {
  DType dtype = DType::kFloat32;
  int64_t size_bytes = 0;
  std::string_view torch_name;     // "float32"
  std::string_view torch_storage;  // "FloatStorage"
  std::string_view safetensors;    // "F32"
  std::string_view numpy;          // "<f4"
};

const DTypeInfo& dtype_info(DType dtype);

inline int64_t size_bytes(DType dtype) { return dtype_info(dtype).size_bytes; }

// The type with this name in a format, for example
// find_dtype(&DTypeInfo::numpy, "<f4"); null when there is none.
const DTypeInfo* find_dtype(std::string_view DTypeInfo::* format,
                            std::string_view name);

}  // namespace lockstep::formats
