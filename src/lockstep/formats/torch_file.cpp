#include "lockstep/formats/torch_file.h"

#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/torch_legacy.h"
#include "lockstep/formats/zip_reader.h"
#include "lockstep/formats/zip_writer.h"

namespace lockstep {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
constexpr std::string_view kFolder = "checkpoint";

bool is_zip(std::span<const std::byte> bytes) {
  return as_text(bytes).starts_with("PK\x03\x04");
}

// All entries lie in one folder, whose name is free.
std::string find_folder(const ZipReader& zip) {
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kPickle)) continue;
    std::string folder =
        entry.name.substr(0, entry.name.size() - kPickle.size());
    if (folder.find('/') == std::string::npos) return folder;
  }
  throw FormatError("a zip archive without data.pkl, so not from torch.save");
}

Value read_zip(MappedFile file, TorchFileCheck check) {
  const ZipReader zip(std::move(file));
  const std::string folder = find_folder(zip);
  if (zip.find(folder + "/constants.pkl") != nullptr) {
    throw FormatError(
        "a TorchScript archive; save the state dict by torch.save instead");
  }
  if (const auto* order = zip.find(folder + "/byteorder")) {
    if (as_text(zip.read(*order)->bytes) != "little") {
      throw FormatError("its tensors are big-endian");
    }
  }
  std::map<std::string, std::shared_ptr<const ByteStorage>, std::less<>> known;
  const auto find_storage = [&](std::string_view key, int64_t num_bytes) {
    auto& storage = known[std::string(key)];
    if (storage == nullptr) {
      const auto* entry = zip.find(folder + "/data/" + std::string(key));
      if (entry == nullptr) {
        throw FormatError("storage '" + std::string(key) + "' is missing");
      }
      storage = check == TorchFileCheck::kAll ? zip.read(*entry)
                                              : zip.read_unchecked(*entry);
    }
    if (storage->bytes.size() != static_cast<size_t>(num_bytes)) {
      throw FormatError("storage '" + std::string(key) + "' has " +
                        std::to_string(storage->bytes.size()) +
                        " bytes instead of " + std::to_string(num_bytes));
    }
    return storage;
  };
  const auto pickle = zip.read(*zip.find(folder + std::string(kPickle)));
  ByteReader in(pickle->bytes);
  return read_pickle(in, find_storage);
}

}  // namespace

bool is_torch_file(std::span<const std::byte> bytes) {
  return is_zip(bytes) || is_legacy_torch_file(bytes);
}

Value read_torch_file(MappedFile file, TorchFileCheck check) {
  if (is_zip(file.bytes)) return read_zip(std::move(file), check);
  if (is_legacy_torch_file(file.bytes)) return read_legacy_torch_file(file);
  throw FormatError("it begins like no file of torch.save");
}

Value read_torch_file(const std::filesystem::path& path, TorchFileCheck check) {
  MappedFile file = map_file(path);
  try {
    return read_torch_file(std::move(file), check);
  } catch (const FormatError& error) {
    throw FormatError("'" + path.string() +
                      "' is damaged or no checkpoint: " + error.what());
  }
}

void write_torch_file(const std::filesystem::path& path, const Value& value) {
  const Pickle pickle = write_pickle(value);
  AtomicFile file(path);
  ZipWriter zip(file);
  const auto add = [&](const std::string& name,
                       std::span<const std::byte> data) {
    zip.add(std::string(kFolder) + name, data);
  };
  add(std::string(kPickle), as_bytes(pickle.bytes));
  add("/byteorder", as_bytes("little"));
  for (size_t i = 0; i < pickle.storages.size(); ++i) {
    add("/data/" + std::to_string(i), pickle.storages[i]);
  }
  add("/version", as_bytes("3\n"));
  zip.finish();
  file.commit();
}

}  // namespace lockstep
