#include "lockstep/formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/formats/byte_reader.h"

namespace lockstep {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the original library
constexpr size_t kAlignment = 8;

struct Place {
  std::string name;
  const DTypeInfo* dtype = nullptr;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Not by get(), which takes 1.5 and true for 1.
template <typename Integer>
Integer integer(const json& number) {
  if (!number.is_number_integer()) {
    throw FormatError("a size or place is no whole number");
  }
  return number.get<Integer>();
}

Place read_place(const std::string& name, const json& entry) {
  const auto type = entry.at("dtype").get<std::string>();
  Place place{.name = name,
              .dtype = find_dtype(&DTypeInfo::safetensors, type),
              .shape = {},
              .begin = integer<uint64_t>(entry.at("data_offsets").at(0)),
              .end = integer<uint64_t>(entry.at("data_offsets").at(1))};
  const auto& shape = entry.at("shape").get_ref<const json::array_t&>();
  std::ranges::transform(shape, std::back_inserter(place.shape),
                         integer<int64_t>);
  if (place.dtype == nullptr) {
    throw FormatError("tensor '" + name + "' has the unknown type " + type);
  }
  return place;
}

Safetensors read_content(const MappedFile& file) {
  ByteReader in(file.bytes);
  const auto length = in.read<uint64_t>();
  if (length > kMaxHeaderBytes) {
    throw FormatError("a header of more than 100 MB");
  }
  const json header = json::parse(in.take_text(length));
  if (!header.is_object()) throw FormatError("its header is no object");
  const auto buffer = in.take(in.remaining());

  Safetensors content{.tensors = {}, .metadata = {}};
  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadata) {
      places.push_back(read_place(name, entry));
      continue;
    }
    for (const auto& [key, text] : entry.items()) {
      content.metadata.emplace_back(key, text.get<std::string>());
    }
  }
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::pair(place.begin, place.end);
  });
  uint64_t position = 0;
  for (Place& place : places) {
    int64_t bytes = 0;
    if (place.begin != position || place.end < place.begin ||
        place.end > buffer.size() ||
        __builtin_mul_overflow(num_elements(place.shape),
                               place.dtype->size_bytes, &bytes) ||
        place.end - place.begin != static_cast<uint64_t>(bytes)) {
      throw FormatError("the place of tensor '" + place.name +
                        "' does not fit its shape and neighbours");
    }
    position = place.end;
    content.tensors.emplace_back(
        place.name,
        make_record(place.dtype->dtype, std::move(place.shape),
                    std::make_shared<const ByteStorage>(ByteStorage{
                        .owner = file.owner,
                        .bytes = buffer.subspan(place.begin,
                                                place.end - place.begin)})));
  }
  if (position != buffer.size()) {
    throw FormatError("it has " + std::to_string(buffer.size()) +
                      " bytes of tensors instead of " +
                      std::to_string(position));
  }
  return content;
}

// Larger element types first, so that every tensor is aligned; then by name.
NamedTensors sorted(NamedTensors tensors) {
  std::ranges::sort(tensors, {}, [](const auto& named) {
    return std::pair(-size_bytes(named.second.dtype), named.first);
  });
  return tensors;
}

std::string make_header(const Safetensors& content,
                        const NamedTensors& tensors) {
  ordered_json header = ordered_json::object();
  for (const auto& [key, text] : content.metadata) {
    header[std::string(kMetadata)][key] = text;
  }
  int64_t position = 0;
  for (const auto& [name, tensor] : tensors) {
    const DTypeInfo& info = dtype_info(tensor.dtype);
    if (info.safetensors.empty()) {
      throw FormatError("tensor '" + name + "': safetensors has no type " +
                        std::string(info.torch_name));
    }
    if (header.contains(name)) {
      throw FormatError("two tensors are named '" + name + "'");
    }
    const int64_t end = position + num_elements(tensor.shape) * info.size_bytes;
    header[name] = {{"dtype", info.safetensors},
                    {"shape", tensor.shape},
                    {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

bool is_safetensors_file(std::span<const std::byte> bytes) {
  return bytes.size() > 8 && bytes[8] == std::byte{'{'};
}

Safetensors read_safetensors(const MappedFile& file) {
  try {
    return read_content(file);
  } catch (const json::exception& error) {
    throw FormatError(error.what());
  }
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  const MappedFile file = map_file(path);
  try {
    return read_safetensors(file);
  } catch (const FormatError& error) {
    throw FormatError("'" + path.string() +
                      "' is damaged or no safetensors file: " + error.what());
  }
}

void write_safetensors(const std::filesystem::path& path,
                       const Safetensors& content) {
  const NamedTensors tensors = sorted(content.tensors);
  std::string header;
  try {
    header = make_header(content, tensors);
  } catch (const json::exception& error) {  // a name that is not UTF-8
    throw FormatError("cannot write '" + path.string() + "': " + error.what());
  }
  AtomicFile file(path);
  const uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    file.write(packed_elements(tensor)->bytes);
  }
  file.commit();
}

}  // namespace lockstep
