#include "lockstep/formats/zip_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/crc32.h"
#include "lockstep/formats/zip_layout.h"

namespace lockstep::formats {
namespace {

constexpr uint16_t kEncrypted = 1U << 0;
constexpr uint16_t kDataDescriptor = 1U << 3;

void require_zip(bool holds, const std::string& what) {
  if (!holds) throw FormatError("zip archive: " + what);
}

struct Directory {
  uint64_t count = 0;
  uint64_t size = 0;
  uint64_t offset = 0;
  uint64_t end = 0;  // where it has to end
};

// Reads the zip64 end record, which lies before the common one. `locator` is
// behind the locator's signature.
Directory find_zip64_directory(const ByteSource& source, ByteReader locator,
                               uint64_t locator_at) {
  locator.read<uint32_t>();  // disk
  const auto end_at = locator.read<uint64_t>();
  require_zip(end_at <= locator_at, "the zip64 locator points nowhere");
  const auto record = source.take(
      end_at, std::min<uint64_t>(zip::kZip64EndBytes, locator_at - end_at));
  ByteReader in(record);
  require_zip(in.read<uint32_t>() == zip::kZip64End, "no zip64 end record");
  require_zip(in.read<uint64_t>() + 12 == locator_at - end_at,
              "the zip64 end record has another size");
  in.take(12);  // versions and disks
  Directory found;
  found.count = in.read<uint64_t>();
  require_zip(in.read<uint64_t>() == found.count, "it has several disks");
  found.size = in.read<uint64_t>();
  found.offset = in.read<uint64_t>();
  found.end = end_at;
  return found;
}

Directory find_directory(const ByteSource& source) {
  require_zip(source.size() >= zip::kEndBytes, "too short, or cut off");
  const uint64_t end_at = source.size() - zip::kEndBytes;
  const auto end = source.take(end_at, zip::kEndBytes);
  ByteReader in(end);
  require_zip(in.read<uint32_t>() == zip::kEnd,
              "no end record in the last 22 bytes: the file is cut off, or "
              "something follows it");
  require_zip(in.read<uint32_t>() == 0, "it has several disks");
  Directory found;
  found.count = in.read<uint16_t>();
  require_zip(in.read<uint16_t>() == found.count, "it has several disks");
  found.size = in.read<uint32_t>();
  found.offset = in.read<uint32_t>();
  found.end = end_at;
  require_zip(in.read<uint16_t>() == 0, "it has a comment");
  // torch writes zip64 records also where they are not needed.
  if (end_at >= zip::kZip64LocatorBytes) {
    const uint64_t locator_at = end_at - zip::kZip64LocatorBytes;
    const auto locator = source.take(locator_at, zip::kZip64LocatorBytes);
    ByteReader in_locator(locator);
    if (in_locator.read<uint32_t>() == zip::kZip64Locator) {
      found = find_zip64_directory(source, in_locator, locator_at);
    }
  }
  require_zip(
      found.offset <= found.end && found.size == found.end - found.offset,
      "the directory is not where the end record points");
  return found;
}

// Replaces those values that mean "see zip64", in the format's fixed order.
void apply_zip64(std::span<const std::byte> extra,
                 std::initializer_list<uint64_t*> values) {
  ByteReader in(extra);
  while (in.remaining() >= 4) {
    const auto id = in.read<uint16_t>();
    ByteReader field(in.take(in.read<uint16_t>()));
    if (id != zip::kZip64Extra) continue;
    for (uint64_t* value : values) {
      if (*value == zip::kSeeZip64) *value = field.read<uint64_t>();
    }
  }
}

// Fields of a central or local header from "flags" to "extra length".
struct Fields {
  uint16_t flags, method;
  uint32_t crc;
  uint64_t compressed, size;
  uint16_t name_length, extra_length;
};

Fields read_fields(ByteReader& in) {
  Fields fields{};
  fields.flags = in.read<uint16_t>();
  fields.method = in.read<uint16_t>();
  in.take(4);  // time and date
  fields.crc = in.read<uint32_t>();
  fields.compressed = in.read<uint32_t>();
  fields.size = in.read<uint32_t>();
  fields.name_length = in.read<uint16_t>();
  fields.extra_length = in.read<uint16_t>();
  return fields;
}

// Where the entry's bytes begin. The local header must repeat what the
// directory says.
uint64_t locate(const ByteSource& source, uint64_t directory_at,
                uint64_t offset, const Fields& central, std::string_view name) {
  const std::string quoted = "'" + std::string(name) + "' ";
  const auto fixed = source.take(offset, zip::kLocalHeaderBytes);
  ByteReader in(fixed);
  require_zip(in.read<uint32_t>() == zip::kLocalHeader,
              quoted + "has no header");
  in.take(2);  // version
  Fields local = read_fields(in);
  const auto rest = source.take(offset + zip::kLocalHeaderBytes,
                                local.name_length + local.extra_length);
  ByteReader in_rest(rest);
  require_zip(in_rest.take_text(local.name_length) == name,
              quoted + "has another name in its header");
  apply_zip64(in_rest.take(local.extra_length),
              {&local.size, &local.compressed});
  require_zip(local.flags == central.flags && local.method == central.method,
              quoted + "is stored another way in its header");
  if ((local.flags & kDataDescriptor) == 0) {
    require_zip(local.crc == central.crc && local.size == central.size &&
                    local.compressed == central.compressed,
                quoted + "has another size or CRC in its header");
  }
  const uint64_t begin = offset + zip::kLocalHeaderBytes + rest.size();
  require_zip(
      begin <= directory_at && central.compressed <= directory_at - begin,
      quoted + "reaches into the directory");
  return begin;
}

ZipEntry read_entry(ByteReader& in, const ByteSource& source,
                    uint64_t directory_at) {
  require_zip(in.read<uint32_t>() == zip::kCentralHeader,
              "its directory is damaged");
  in.take(4);  // versions
  Fields fields = read_fields(in);
  const auto comment_length = in.read<uint16_t>();
  in.take(8);  // disk and attributes
  uint64_t offset = in.read<uint32_t>();
  const std::string name(in.take_text(fields.name_length));
  apply_zip64(in.take(fields.extra_length),
              {&fields.size, &fields.compressed, &offset});
  in.take(comment_length);
  require_zip((fields.flags & kEncrypted) == 0, "'" + name + "' is encrypted");
  require_zip(
      fields.method == zip::kDeflated ||
          (fields.method == zip::kStored && fields.size == fields.compressed),
      "'" + name + "' is compressed by an unknown method");
  return {.name = name,
          .method = fields.method,
          .crc = fields.crc,
          .size = fields.size,
          .offset = offset,
          .data_offset = locate(source, directory_at, offset, fields, name),
          .stored_size = fields.compressed};
}

// `second` begins at or behind the begin of `first`.
bool overlap(const ZipEntry& first, const ZipEntry& second) {
  return second.offset == first.offset ||
         second.data_offset < first.data_offset + first.stored_size;
}

// Compressed entries could make a small archive ask for any amount of memory.
void check_inflated_size(std::span<const ZipEntry> entries,
                         uint64_t archive_bytes) {
  constexpr uint64_t kAlways = uint64_t{64} << 20;
  constexpr uint64_t kMostTimes = 16;
  uint64_t total = 0;
  for (const ZipEntry& entry : entries) {
    if (entry.method != zip::kDeflated) continue;
    // Deflate cannot do better than 1 : 1032; more is a lie.
    require_zip(entry.size / 1100 <= entry.stored_size,
                "'" + entry.name + "' claims an impossible size");
    total += entry.size;
  }
  require_zip(
      total <= kAlways + kMostTimes * archive_bytes,
      fmt::format("its compressed entries have {} bytes, more than 64 MiB "
                  "and {} times the {} bytes of the archive; save it "
                  "without compression if you trust it",
                  total, kMostTimes, archive_bytes));
}

std::vector<std::byte> inflate_entry(const ByteSource& source,
                                     const ZipEntry& entry) {
  const auto raw = source.take(entry.data_offset, entry.stored_size);
  std::vector<std::byte> out(entry.size);
  z_stream stream{};
  require_zip(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib does not start");
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
  size_t in_at = 0;
  size_t out_at = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t in_piece = std::min(kPiece, raw.size() - in_at);
    const size_t out_piece = std::min(kPiece, out.size() - out_at);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(raw.data() + in_at));
    stream.avail_in = static_cast<uInt>(in_piece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + out_at);
    stream.avail_out = static_cast<uInt>(out_piece);
    status = inflate(&stream, Z_NO_FLUSH);
    in_at += in_piece - stream.avail_in;
    out_at += out_piece - stream.avail_out;
  }
  inflateEnd(&stream);
  require_zip(status == Z_STREAM_END && out_at == out.size(),
              "'" + entry.name + "' cannot be decompressed");
  return out;
}

}  // namespace

ZipReader::ZipReader(ByteSource source) : source_(std::move(source)) {
  const Directory directory = find_directory(source_);
  const auto bytes = source_.take(directory.offset, directory.size);
  ByteReader in(bytes);
  while (in.remaining() > 0) {
    entries_.push_back(read_entry(in, source_, directory.offset));
  }
  require_zip(entries_.size() == directory.count,
              "its directory has lost entries");
  std::ranges::sort(entries_, {}, &ZipEntry::offset);
  require_zip(std::ranges::adjacent_find(entries_, &overlap) == entries_.end(),
              "two entries share bytes");
  std::ranges::sort(entries_, {}, &ZipEntry::name);
  require_zip(std::ranges::adjacent_find(entries_, {}, &ZipEntry::name) ==
                  entries_.end(),
              "two entries have one name");
  check_inflated_size(entries_, source_.size());
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(entries_, name, {}, &ZipEntry::name);
  if (found == entries_.end() || found->name != name) return nullptr;
  return &*found;
}

std::shared_ptr<const ByteStorage> ZipReader::storage(
    const ZipEntry& entry) const {
  if (entry.method == zip::kStored) {
    return std::make_shared<const ByteStorage>(
        source_, entry.data_offset, entry.stored_size,
        Checksum{.crc32 = entry.crc, .name = entry.name});
  }
  auto content = ByteStorage::own(inflate_entry(source_, entry));
  require_zip(crc32_of(content->bytes()) == entry.crc,
              "the bytes of '" + entry.name + "' are damaged (CRC)");
  return content;
}

std::shared_ptr<const ByteStorage> ZipReader::read(
    const ZipEntry& entry) const {
  auto content = storage(entry);
  if (content->is_in_memory()) {
    content->check();
  } else {
    content->bytes();
  }
  return content;
}

}  // namespace lockstep::formats
