#include "lockstep/formats/torch_legacy.h"

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/formats/pickle_reader.h"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

// The pickle of the number 0x1950a86a20f9469cfc6c.
constexpr auto kMagic =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
constexpr int64_t kVersion = 1001;

Value read_plain(ByteReader& in) {
  return read_pickle(
      in, [](std::string_view, int64_t) -> std::shared_ptr<const ByteStorage> {
        throw FormatError("a tensor where none belongs");
      });
}

struct Announced {
  int64_t num_bytes = 0;
  std::shared_ptr<ByteStorage> storage = std::make_shared<ByteStorage>();
};

}  // namespace

bool is_legacy_torch_file(std::span<const std::byte> bytes) {
  return as_text(bytes).starts_with(kMagic);
}

Value read_legacy_torch_file(const MappedFile& file) {
  ByteReader in(file.bytes);
  in.take(kMagic.size());
  const Value version = read_plain(in);
  const Value system = read_plain(in);
  if (BasicView(version).as_int() != kVersion) {
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
    if (found == announced.end() || found->second.storage->owner != nullptr) {
      throw FormatError("a storage that no tensor uses, or given twice");
    }
    // Its number of elements, which need not be counted: the size is known.
    const auto count = in.read<int64_t>();
    if ((count == 0) != (found->second.num_bytes == 0) ||
        (count != 0 && found->second.num_bytes % count != 0)) {
      throw FormatError("a storage of another size than announced");
    }
    *found->second.storage = {
        .owner = file.owner,
        .bytes = in.take(static_cast<size_t>(found->second.num_bytes))};
    ++num_filled;
  }
  if (num_filled != announced.size()) throw FormatError("a storage is missing");
  return value;
}

}  // namespace lockstep
