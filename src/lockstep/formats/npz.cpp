#include "lockstep/formats/npz.h"

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/zip_reader.h"
#include "lockstep/formats/zip_writer.h"

namespace lockstep::formats {
namespace {

using namespace std::string_view_literals;

constexpr auto kMagic = "\x93NUMPY"sv;
constexpr std::string_view kSuffix = ".npy";
constexpr size_t kNpyAlignment = 64;

// The text behind 'key': in the header, a Python dict such as
// {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
std::string_view value_of(std::string_view header, std::string_view key) {
  const auto quoted = "'" + std::string(key) + "':";
  const auto at = header.find(quoted);
  if (at == std::string_view::npos) {
    throw FormatError("an array's header has no " + quoted);
  }
  return base::trim(header.substr(at + quoted.size()));
}

std::vector<int64_t> read_shape(std::string_view text) {
  const auto end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) {
    throw FormatError("an array's shape is not a tuple");
  }
  std::vector<int64_t> shape;
  for (const auto& part : base::split(text.substr(1, end - 1), ',')) {
    if (base::trim(part).empty()) continue;
    const auto size = base::parse_integer(base::trim(part));
    if (!size) throw FormatError("an array's shape holds '" + part + "'");
    shape.push_back(*size);
  }
  return shape;
}

DType read_type(std::string_view text) {
  const auto end = text.find('\'', 1);
  const auto* info =
      text.starts_with('\'') && end != std::string_view::npos
          ? find_dtype(&DTypeInfo::numpy, text.substr(1, end - 1))
          : nullptr;
  if (info == nullptr) {
    throw FormatError("an array's type is not supported: " +
                      std::string(text.substr(0, 20)));
  }
  return info->dtype;
}

TensorRecord read_array(const std::shared_ptr<const ByteStorage>& content) {
  ByteReader in(content->bytes());
  if (in.take_text(kMagic.size()) != kMagic) {
    throw FormatError("an array does not begin like a .npy file");
  }
  const auto version = in.read<uint8_t>();
  in.take(1);  // minor version
  const size_t length =
      version == 1 ? in.read<uint16_t>() : in.read<uint32_t>();
  const std::string_view header = in.take_text(length);
  const auto data = in.take(in.remaining());
  auto shape = read_shape(value_of(header, "shape"));
  const bool is_fortran = value_of(header, "fortran_order").starts_with("True");
  if (is_fortran) std::ranges::reverse(shape);
  auto array = make_record(read_type(value_of(header, "descr")),
                           std::move(shape), ByteStorage::view(data, content));
  if (num_elements(array.shape) * size_bytes(array.dtype) !=
      static_cast<int64_t>(data.size())) {
    throw FormatError("an array has more bytes than its shape needs");
  }
  if (is_fortran) {
    std::ranges::reverse(array.shape);
    std::ranges::reverse(array.strides);
  }
  return array;
}

std::string make_npy_header(const TensorRecord& array,
                            const std::string& name) {
  const DTypeInfo& info = dtype_info(array.dtype);
  if (info.numpy.empty()) {
    throw FormatError("array '" + name + "': numpy has no type " +
                      std::string(info.torch_name));
  }
  std::string text = "{'descr': '" + std::string(info.numpy) +
                     "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : array.shape) text += std::to_string(size) + ",";
  text += "), }";
  // Magic, version, length, text and line feed fill a multiple of 64 bytes.
  const size_t used = kMagic.size() + 4 + text.size() + 1;
  text.append((kNpyAlignment - used % kNpyAlignment) % kNpyAlignment, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::string header(kMagic);
  header += "\x01\x00"sv;
  header.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return header + text;
}

}  // namespace

NamedTensors read_npz(const ByteSource& source) {
  const ZipReader zip(source);
  NamedTensors arrays;
  for (const ZipEntry& entry : zip.entries()) {
    std::string name = entry.name;
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    arrays.emplace_back(name, read_array(zip.read(entry)));
  }
  return arrays;
}

NamedTensors read_npz(const std::filesystem::path& path) {
  const ByteSource source = open_source(path);
  try {
    return read_npz(source);
  } catch (const FormatError& error) {
    throw FormatError("'" + path.string() +
                      "' is damaged or not an npz file: " + error.what());
  }
}

void write_npz(const std::filesystem::path& path, const NamedTensors& arrays) {
  base::AtomicFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, array] : arrays) {
    const std::string header = make_npy_header(array, name);
    const auto elements = packed_elements(array);
    std::vector<std::byte> entry(header.size() + elements->bytes().size());
    std::ranges::copy(as_bytes(header), entry.begin());
    std::ranges::copy(
        elements->bytes(),
        entry.begin() + static_cast<std::ptrdiff_t>(header.size()));
    zip.add(name + std::string(kSuffix), entry);
  }
  zip.finish();
  file.commit();
}

}  // namespace lockstep::formats
