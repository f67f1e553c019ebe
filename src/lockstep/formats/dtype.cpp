#include "lockstep/formats/dtype.h"

#include <algorithm>
#include <array>

namespace lockstep::formats {
namespace {

// In the order of the enumerators.
constexpr std::array<DTypeInfo, 17> kTypes = {{
    {DType::kFloat64, 8, "float64", "DoubleStorage", "F64", "<f8"},
    {DType::kFloat32, 4, "float32", "FloatStorage", "F32", "<f4"},
    {DType::kFloat16, 2, "float16", "HalfStorage", "F16", "<f2"},
    {DType::kBFloat16, 2, "bfloat16", "BFloat16Storage", "BF16", ""},
    {DType::kInt64, 8, "int64", "LongStorage", "I64", "<i8"},
    {DType::kInt32, 4, "int32", "IntStorage", "I32", "<i4"},
    {DType::kInt16, 2, "int16", "ShortStorage", "I16", "<i2"},
    {DType::kInt8, 1, "int8", "CharStorage", "I8", "|i1"},
    {DType::kUInt8, 1, "uint8", "ByteStorage", "U8", "|u1"},
    {DType::kBool, 1, "bool", "BoolStorage", "BOOL", "|b1"},
    {DType::kComplex64, 8, "complex64", "ComplexFloatStorage", "C64", "<c8"},
    {DType::kComplex128, 16, "complex128", "ComplexDoubleStorage", "", "<c16"},
    {DType::kUInt16, 2, "uint16", "", "U16", "<u2"},
    {DType::kUInt32, 4, "uint32", "", "U32", "<u4"},
    {DType::kUInt64, 8, "uint64", "", "U64", "<u8"},
    {DType::kFloat8E4M3, 1, "float8_e4m3fn", "", "F8_E4M3", ""},
    {DType::kFloat8E5M2, 1, "float8_e5m2", "", "F8_E5M2", ""},
}};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  return kTypes.at(static_cast<size_t>(dtype));
}

const DTypeInfo* find_dtype(std::string_view DTypeInfo::* format,
                            std::string_view name) {
  if (name.empty()) return nullptr;
  const auto* found = std::ranges::find(kTypes, name, format);
  return found == kTypes.end() ? nullptr : &*found;
}

}  // namespace lockstep::formats
