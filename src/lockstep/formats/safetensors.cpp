#include "lockstep/formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lockstep/base/atomic_file.h"
#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/safetensors_header.h"

namespace lockstep::formats {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the original library
constexpr size_t kHeaderAlignment = 8;

// The tensors that a header names, in the order of their bytes.
Safetensors make_tensors(SafetensorsHeader header, const ByteSource& source,
                         uint64_t buffer_at) {
  const uint64_t buffer_size = source.size() - buffer_at;
  std::ranges::sort(header.places, {}, [](const SafetensorsPlace& place) {
    return std::pair(place.begin, place.end);
  });
  Safetensors content{.tensors = {}, .metadata = std::move(header.metadata)};
  content.tensors.reserve(header.places.size());
  uint64_t position = 0;
  for (SafetensorsPlace& place : header.places) {
    int64_t bytes = 0;
    if (place.begin != position || place.end < place.begin ||
        place.end > buffer_size ||
        __builtin_mul_overflow(num_elements(place.shape),
                               place.dtype->size_bytes, &bytes) ||
        place.end - place.begin != static_cast<uint64_t>(bytes)) {
      throw FormatError("the offsets of tensor '" + place.name +
                        "' does not fit its shape and neighbours");
    }
    position = place.end;
    content.tensors.emplace_back(
        std::move(place.name),
        make_record(
            place.dtype->dtype, std::move(place.shape),
            std::make_shared<const ByteStorage>(source, buffer_at + place.begin,
                                                place.end - place.begin)));
  }
  if (position != buffer_size) {
    throw FormatError("it has " + std::to_string(buffer_size) +
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

// Written entry by entry: an object of nlohmann's that keeps its order looks
// every new name up among all others.
std::string make_safetensors_header(const Safetensors& content,
                                    const NamedTensors& tensors) {
  std::string text = "{";
  const auto add = [&](const std::string& name, const ordered_json& entry) {
    text +=
        (text.size() > 1 ? "," : "") + json(name).dump() + ":" + entry.dump();
  };
  if (!content.metadata.empty()) {
    ordered_json metadata = ordered_json::object();
    for (const auto& [key, value] : content.metadata) metadata[key] = value;
    add(std::string(kSafetensorsMetadata), metadata);
  }
  std::set<std::string_view> names;
  int64_t position = 0;
  for (const auto& [name, tensor] : tensors) {
    const DTypeInfo& info = dtype_info(tensor.dtype);
    if (info.safetensors.empty()) {
      throw FormatError("tensor '" + name + "': safetensors has no type " +
                        std::string(info.torch_name));
    }
    if (name == kSafetensorsMetadata || !names.insert(name).second) {
      throw FormatError("two tensors are named '" + name + "'");
    }
    const int64_t end = position + num_elements(tensor.shape) * info.size_bytes;
    add(name, {{"dtype", info.safetensors},
               {"shape", tensor.shape},
               {"data_offsets", {position, end}}});
    position = end;
  }
  text += "}";
  text.append(
      (kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment,
      ' ');
  return text;
}

}  // namespace

bool is_safetensors_file(const ByteSource& source) {
  return source.size() > 8 && source.take(8, 1)[0] == std::byte{'{'};
}

Safetensors read_safetensors(const ByteSource& source) {
  uint64_t length = 0;
  source.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes) {
    throw FormatError("a header of more than 100 MB");
  }
  SafetensorsHeader header;
  {
    const auto text = source.take(sizeof(length), length);
    header = parse_safetensors_header(as_text(text));
  }
  return make_tensors(std::move(header), source, sizeof(length) + length);
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  const ByteSource source = open_source(path);
  try {
    return read_safetensors(source);
  } catch (const FormatError& error) {
    throw FormatError(
        "'" + path.string() +
        "' is damaged or not a safetensors file: " + error.what());
  }
}

void write_safetensors(const std::filesystem::path& path,
                       const Safetensors& content) {
  const NamedTensors tensors = sorted(content.tensors);
  std::string header;
  try {
    header = make_safetensors_header(content, tensors);
  } catch (const json::exception& error) {  // a name that is not UTF-8
    throw FormatError("cannot write '" + path.string() + "': " + error.what());
  }
  base::AtomicFile file(path);
  const uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    file.write(packed_elements(tensor)->bytes());
  }
  file.commit();
}

}  // namespace lockstep::formats
