#include "unit/formats/sample_files.h"

#include <zlib.h>

#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/pickle_writer.h"

namespace lockstep::testing {
namespace {

using namespace std::string_literals;

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string deflated(const std::string& content) {
  std::string out(compressBound(content.size()) + 16, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
               Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string stored_bytes(const RawZipEntry& entry) {
  return entry.is_deflated ? deflated(entry.content) : entry.content;
}

// Version to length of the extra field.
std::string shared_fields(const RawZipEntry& entry, size_t stored_size) {
  const auto crc =
      crc32_z(0, reinterpret_cast<const Bytef*>(entry.content.data()),
              entry.content.size());
  const auto size = static_cast<uint32_t>(entry.content.size());
  return bytes_of<uint16_t>(20) + bytes_of<uint16_t>(0) +
         bytes_of<uint16_t>(entry.is_deflated ? 8 : 0) + bytes_of<uint32_t>(0) +
         bytes_of(static_cast<uint32_t>(crc)) +
         bytes_of(static_cast<uint32_t>(stored_size)) +
         bytes_of(entry.claimed_size.value_or(size)) +
         bytes_of(static_cast<uint16_t>(entry.name.size())) +
         bytes_of<uint16_t>(0);
}

std::string entry_with(const RawZipEntry& entry, const std::string& stored) {
  return "PK\x03\x04" + shared_fields(entry, stored.size()) + entry.name +
         stored;
}

}  // namespace

std::string raw_zip_entry(const RawZipEntry& entry) {
  return entry_with(entry, stored_bytes(entry));
}

std::string raw_zip(const std::vector<RawZipEntry>& entries) {
  std::string file;
  std::string directory;
  for (const RawZipEntry& entry : entries) {
    const auto offset = static_cast<uint32_t>(file.size());
    const std::string stored = stored_bytes(entry);
    directory += "PK\x01\x02" + bytes_of<uint16_t>(20) +
                 shared_fields(entry, stored.size()) + std::string(10, '\0') +
                 bytes_of(entry.claimed_offset.value_or(offset)) + entry.name;
    file += entry_with(entry, stored);
  }
  const auto count = static_cast<uint16_t>(entries.size());
  return file + directory + "PK\x05\x06" + bytes_of<uint32_t>(0) +
         bytes_of(count) + bytes_of(count) +
         bytes_of(static_cast<uint32_t>(directory.size())) +
         bytes_of(static_cast<uint32_t>(file.size())) + bytes_of<uint16_t>(0);
}

std::string old_torch_file(const formats::Value& value) {
  const formats::Pickle pickle = formats::write_pickle(value);
  formats::Value system;
  system["little_endian"] = true;
  formats::Value keys = formats::Value::list();
  std::string storages;
  for (size_t i = 0; i < pickle.storages.size(); ++i) {
    keys.push_back(std::to_string(i));
    storages += bytes_of(static_cast<int64_t>(pickle.storages[i].size() / 4));
    storages += formats::as_text(pickle.storages[i]);
  }
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s +
         formats::write_pickle(1001).bytes +
         formats::write_pickle(system).bytes + pickle.bytes +
         formats::write_pickle(keys).bytes + storages;
}

}  // namespace lockstep::testing
