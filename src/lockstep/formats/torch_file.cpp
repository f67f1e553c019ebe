#include "lockstep/formats/torch_file.h"

#include <map>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/torch_legacy.h"
#include "lockstep/formats/zip_reader.h"
#include "lockstep/formats/zip_writer.h"

namespace lockstep::formats {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
constexpr std::string_view kFolder = "checkpoint";

constexpr std::string_view kZipBegin = "PK\x03\x04";

// All entries lie in one folder of any name.
std::string find_folder(const ZipReader& zip) {
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kPickle)) continue;
    std::string folder =
        entry.name.substr(0, entry.name.size() - kPickle.size());
    if (folder.find('/') == std::string::npos) return folder;
  }
  throw FormatError("a zip archive without data.pkl, so not from torch.save");
}

Value read_zip(const ByteSource& source, TorchFileCheck check) {
  const ZipReader zip(source);
  const std::string folder = find_folder(zip);
  if (zip.find(folder + "/constants.pkl") != nullptr) {
    throw FormatError(
        "a TorchScript archive; save the state dict by torch.save instead");
  }
  if (const auto* order = zip.find(folder + "/byteorder")) {
    if (as_text(zip.read(*order)->bytes()) != "little") {
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
      if (entry->size != static_cast<uint64_t>(num_bytes)) {
        throw FormatError("storage '" + std::string(key) + "' has " +
                          std::to_string(entry->size) + " bytes instead of " +
                          std::to_string(num_bytes));
      }
      storage = zip.storage(*entry);
      if (check == TorchFileCheck::kAll) storage->check();
    }
    if (storage->size() != static_cast<size_t>(num_bytes)) {
      throw FormatError("storage '" + std::string(key) + "' has two sizes");
    }
    return storage;
  };
  const ZipEntry& entry = *zip.find(folder + std::string(kPickle));
  const auto pickle = zip.read(entry);
  ByteReader in(pickle->bytes());
  return read_pickle(in, find_storage, entry.stored_size);
}

bool begins_with(const ByteSource& source, std::string_view begin) {
  if (source.size() < begin.size()) return false;
  return as_text(source.take(0, begin.size())) == begin;
}

}  // namespace

bool is_torch_file(const ByteSource& source) {
  return begins_with(source, kZipBegin) ||
         begins_with(source, kLegacyTorchMagic);
}

Value read_torch_file(const ByteSource& source, TorchFileCheck check) {
  if (begins_with(source, kZipBegin)) return read_zip(source, check);
  if (begins_with(source, kLegacyTorchMagic)) {
    return read_legacy_torch_file(source);
  }
  throw FormatError("it does not begin like a file of torch.save");
}

Value read_torch_file(const std::filesystem::path& path, TorchFileCheck check) {
  const ByteSource source = open_source(path);
  try {
    return read_torch_file(source, check);
  } catch (const FormatError& error) {
    throw FormatError("'" + path.string() +
                      "' is damaged or not a checkpoint: " + error.what());
  }
}

void write_torch_file(const std::filesystem::path& path, const Value& value) {
  const Pickle pickle = write_pickle(value);
  base::AtomicFile file(path);
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

}  // namespace lockstep::formats
