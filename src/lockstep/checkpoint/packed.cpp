#include "lockstep/checkpoint/packed.h"

#include <cstring>
#include <span>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/checkpoint/host_copy.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/error.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"

namespace lockstep::checkpoint {
namespace {

// The pickle of a torch file, then its storages, each behind its size.
void put(std::string& bytes, std::span<const std::byte> part) {
  const uint64_t size = part.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
}

std::span<const std::byte> take(std::span<const std::byte>& bytes) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) throw FormatError("packed state is cut off");
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes = bytes.subspan(sizeof(size));
  if (bytes.size() < size) throw FormatError("packed state is cut off");
  const auto part = bytes.first(size);
  bytes = bytes.subspan(size);
  return part;
}

}  // namespace

std::string pack(const Tree& tree) {
  const formats::Value value = to_value(host_copy(tree, CpuTensors::kShare));
  const formats::Pickle pickle = write_pickle(value);
  size_t total = pickle.bytes.size() + sizeof(uint64_t);
  for (const auto& storage : pickle.storages) {
    total += storage.size() + sizeof(uint64_t);
  }
  std::string bytes;
  bytes.reserve(total);
  put(bytes, std::as_bytes(std::span(pickle.bytes)));
  for (const auto& storage : pickle.storages) put(bytes, storage);
  return bytes;
}

Tree unpack(std::string_view bytes) {
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes));
  formats::ByteReader in(take(rest));
  std::vector<std::shared_ptr<const formats::ByteStorage>> storages;
  while (!rest.empty()) {
    storages.push_back(formats::ByteStorage::view(take(rest), nullptr));
  }
  const auto find_storage = [&](std::string_view key, int64_t num_bytes) {
    const auto number = base::parse_integer(key);
    if (!number || *number < 0 || *number >= std::ssize(storages) ||
        static_cast<int64_t>(storages[static_cast<size_t>(*number)]->size()) !=
            num_bytes) {
      throw FormatError("packed state lacks storage " + std::string(key));
    }
    return storages[static_cast<size_t>(*number)];
  };
  return to_tree(formats::read_pickle(in, find_storage));
}

}  // namespace lockstep::checkpoint
