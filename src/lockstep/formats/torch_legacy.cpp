#include "lockstep/formats/torch_legacy.h"

#include <map>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/formats/pickle_reader.h"

namespace lockstep::formats {
namespace {

constexpr int64_t kLegacyVersion = 1001;

Value read_plain(ByteReader& in) {
  return read_pickle(
      in, [](std::string_view, int64_t) -> std::shared_ptr<const ByteStorage> {
        throw FormatError("an unexpected tensor");
      });
}

struct Announced {
  int64_t num_bytes = 0;
  bool is_filled = false;
  std::shared_ptr<ByteStorage> storage = std::make_shared<ByteStorage>();
};

// The whole file: only parsing its pickles shows where they end; the storages
// are read from the file when they are needed.
std::span<const std::byte> all_bytes(const ByteSource& source,
                                     std::vector<std::byte>& buffer) {
  const auto in_memory = source.in_memory(0, source.size());
  if (in_memory.data() != nullptr) return in_memory;
  buffer = source.take(0, source.size());
  return buffer;
}

}  // namespace

Value read_legacy_torch_file(const ByteSource& source) {
  std::vector<std::byte> buffer;
  ByteReader in(all_bytes(source, buffer));
  in.take(kLegacyTorchMagic.size());
  const Value version = read_plain(in);
  const Value system = read_plain(in);
  if (BasicView(version).as_int() != kLegacyVersion) {
    throw FormatError("an unknown version of torch's old format");
  }
  if (!system.at("little_endian").as_bool()) {
    throw FormatError("its tensors are big-endian");
  }
  std::map<std::string, Announced, std::less<>> announced;
  Value value = read_pickle(in, [&](std::string_view key, int64_t num_bytes) {
    const auto [found, is_new] =
        announced.try_emplace(std::string(key), Announced{num_bytes});
    if (found->second.num_bytes != num_bytes) {
      throw FormatError("a storage with two sizes");
    }
    return found->second.storage;
  });
  // Then the keys in the order in which the storages follow.
  const Value keys = read_plain(in);
  size_t num_filled = 0;
  for (const Value& key : BasicView(keys).as_list()) {
    const auto found = announced.find(BasicView(key).as_string());
    if (found == announced.end() || found->second.is_filled) {
      throw FormatError("a storage that no tensor uses, or given twice");
    }
    // Its number of elements, which need not be counted: the size is known.
    const auto count = in.read<int64_t>();
    if ((count == 0) != (found->second.num_bytes == 0) ||
        (count != 0 && found->second.num_bytes % count != 0)) {
      throw FormatError("a storage of another size than announced");
    }
    found->second.storage->place_in(
        source, in.position(), static_cast<uint64_t>(found->second.num_bytes));
    in.take(static_cast<size_t>(found->second.num_bytes));
    found->second.is_filled = true;
    ++num_filled;
  }
  if (num_filled != announced.size()) throw FormatError("a storage is missing");
  return value;
}

}  // namespace lockstep::formats
