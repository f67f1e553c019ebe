#include "lockstep/formats/zip_writer.h"

#include <algorithm>
#include <concepts>

#include "lockstep/error.h"
#include "lockstep/formats/crc32.h"
#include "lockstep/formats/zip_layout.h"

namespace lockstep::formats {
namespace {

constexpr uint64_t kEntryAlignment = 64;
constexpr uint16_t kZipVersion = 45;      // 4.5: zip64
constexpr uint16_t kUtf8 = 1U << 11;      // names are UTF-8
constexpr uint16_t kDate = 1U << 5 | 1U;  // 1 January 1980

template <std::unsigned_integral T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t capped(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, zip::kSeeZip64));
}

// An extra field that makes the data behind it begin at a multiple of 64.
std::string padding(uint64_t position) {
  const uint64_t begin = position + 4;
  const uint64_t count =
      (kEntryAlignment - begin % kEntryAlignment) % kEntryAlignment;
  std::string extra;
  put<uint16_t>(extra, 0x4246);  // "FB"
  put<uint16_t>(extra, static_cast<uint16_t>(count));
  extra.append(count, 'Z');
  return extra;
}

std::string zip64_extra(std::initializer_list<uint64_t> values) {
  std::string extra;
  put<uint16_t>(extra, zip::kZip64Extra);
  put<uint16_t>(extra, static_cast<uint16_t>(8 * values.size()));
  for (const uint64_t value : values) put(extra, value);
  return extra;
}

// The fields that local and central header share.
struct Shared {
  uint32_t crc = 0;
  uint64_t size = 0;
  uint16_t name_length = 0;
  uint16_t extra_length = 0;
};

void put_shared(std::string& out, const Shared& fields) {
  put<uint16_t>(out, kZipVersion);
  put<uint16_t>(out, kUtf8);
  put<uint16_t>(out, zip::kStored);
  put<uint16_t>(out, 0);  // time
  put<uint16_t>(out, kDate);
  put(out, fields.crc);
  put(out, capped(fields.size));  // compressed
  put(out, capped(fields.size));
  put(out, fields.name_length);
  put(out, fields.extra_length);
}

}  // namespace

void ZipWriter::add(std::string_view name, std::span<const std::byte> data) {
  LOCKSTEP_CHECK(name.size() < 0xffff, "the name of a zip entry is too long");
  Entry entry{.name = std::string(name),
              .crc = crc32_of(data),
              .size = data.size(),
              .offset = file_.size()};
  std::string extra;
  if (entry.size >= zip::kSeeZip64) {
    extra = zip64_extra({entry.size, entry.size});
  }
  extra += padding(entry.offset + zip::kLocalHeaderBytes + name.size() +
                   extra.size());
  std::string header;
  put(header, zip::kLocalHeader);
  put_shared(header, {.crc = entry.crc,
                      .size = entry.size,
                      .name_length = static_cast<uint16_t>(name.size()),
                      .extra_length = static_cast<uint16_t>(extra.size())});
  file_.write(header + entry.name + extra);
  file_.write(data);
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t begin = file_.size();
  std::string out;
  for (const Entry& entry : entries_) {
    std::string extra;
    if (entry.size >= zip::kSeeZip64 || entry.offset >= zip::kSeeZip64) {
      extra = entry.size < zip::kSeeZip64 ? zip64_extra({entry.offset})
              : entry.offset < zip::kSeeZip64
                  ? zip64_extra({entry.size, entry.size})
                  : zip64_extra({entry.size, entry.size, entry.offset});
    }
    put(out, zip::kCentralHeader);
    put<uint16_t>(out, kZipVersion);  // made by
    put_shared(out, {.crc = entry.crc,
                     .size = entry.size,
                     .name_length = static_cast<uint16_t>(entry.name.size()),
                     .extra_length = static_cast<uint16_t>(extra.size())});
    put<uint16_t>(out, 0);  // comment length
    put<uint16_t>(out, 0);  // disk
    put<uint16_t>(out, 0);  // internal attributes
    put<uint32_t>(out, 0);  // external attributes
    put(out, capped(entry.offset));
    out += entry.name + extra;
  }
  const uint64_t size = out.size();
  const uint64_t count = entries_.size();
  if (begin >= zip::kSeeZip64 || size >= zip::kSeeZip64 || count >= 0xffff) {
    put(out, zip::kZip64End);
    put<uint64_t>(out, zip::kZip64EndBytes - 12);
    put<uint16_t>(out, kZipVersion);
    put<uint16_t>(out, kZipVersion);
    put<uint32_t>(out, 0);  // this disk
    put<uint32_t>(out, 0);  // disk of the directory
    for (const uint64_t value : {count, count, size, begin}) put(out, value);
    put(out, zip::kZip64Locator);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, begin + size);
    put<uint32_t>(out, 1);  // disks
  }
  const auto short_count =
      static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  put(out, zip::kEnd);
  put<uint32_t>(out, 0);  // disks
  put(out, short_count);
  put(out, short_count);
  put(out, capped(size));
  put(out, capped(begin));
  put<uint16_t>(out, 0);  // comment length
  file_.write(out);
}

}  // namespace lockstep::formats
