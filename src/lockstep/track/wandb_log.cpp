#include "lockstep/track/wandb_log.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::track {
namespace {

constexpr std::string_view kFileHeader("\x3a\x57\x26\x42\xe1\xbe\x00", 7);
constexpr uint64_t kBlockBytes = 32768;
// Check sum (4), length (2), kind (1).
constexpr uint64_t kChunkHeaderBytes = 7;

enum ChunkKind : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

struct Chunk {
  uint8_t kind = 0;
  std::string_view payload = {};
};

// Plain CRC-32, not the masked CRC-32C of LevelDB.
uint32_t check_sum(uint8_t kind, std::string_view payload) {
  const auto begin = static_cast<uint32_t>(crc32(0, &kind, 1));
  return static_cast<uint32_t>(
      crc32(begin, reinterpret_cast<const Bytef*>(payload.data()),
            static_cast<uInt>(payload.size())));
}

void append_little_endian(std::string& bytes, uint32_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) {
    bytes += static_cast<char>(value >> 8 * i & 0xff);
  }
}

uint32_t read_little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
  }
  return value;
}

uint64_t left_in_block(uint64_t offset) {
  return kBlockBytes - offset % kBlockBytes;
}

// The chunk at an offset that has room for a header in its block; without a
// kind when it is damaged.
Chunk read_chunk(std::string_view file, uint64_t offset) {
  const auto header = file.substr(offset, kChunkHeaderBytes);
  if (header.size() < kChunkHeaderBytes) return {};
  const uint32_t length = read_little_endian(header.substr(4, 2));
  if (kChunkHeaderBytes + length > left_in_block(offset)) return {};
  const auto kind = static_cast<uint8_t>(header[6]);
  const auto payload = file.substr(offset + kChunkHeaderBytes, length);
  const bool is_whole =
      payload.size() == length && kind >= kFull && kind <= kLast &&
      read_little_endian(header.substr(0, 4)) == check_sum(kind, payload);
  return is_whole ? Chunk{kind, payload} : Chunk{};
}

}  // namespace

std::string wandb_frame(std::string_view record, uint64_t offset) {
  std::string bytes;
  bool is_first = true;
  bool is_last = false;
  while (!is_last) {
    uint64_t left = left_in_block(offset + bytes.size());
    if (left < kChunkHeaderBytes) {
      bytes.append(left, '\0');
      left = kBlockBytes;
    }
    const auto payload = record.substr(0, left - kChunkHeaderBytes);
    record.remove_prefix(payload.size());
    is_last = record.empty();
    const ChunkKind kind =
        is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle);
    append_little_endian(bytes, check_sum(kind, payload), 4);
    append_little_endian(bytes, static_cast<uint32_t>(payload.size()), 2);
    bytes += static_cast<char>(kind);
    bytes += payload;
    is_first = false;
  }
  return bytes;
}

std::string wandb_log_bytes(std::span<const std::string> records) {
  std::string bytes(kFileHeader);
  for (const auto& record : records) bytes += wandb_frame(record, bytes.size());
  return bytes;
}

std::vector<std::string> read_wandb_log(const std::filesystem::path& path) {
  const std::string file = base::read_file(path);
  if (!file.starts_with(kFileHeader)) {
    throw FormatError(
        fmt::format("{} is not the file of a Weights & Biases run: it does not "
                    "begin with \":W&B\"",
                    path.string()));
  }
  std::vector<std::string> records;
  std::string record;
  bool is_inside = false;
  uint64_t offset = kFileHeader.size();
  while (offset < file.size()) {
    const uint64_t left = left_in_block(offset);
    const Chunk chunk =
        left < kChunkHeaderBytes ? Chunk{} : read_chunk(file, offset);
    if (chunk.kind == 0) {
      // The filler of a block, or damage: the next block is sound again.
      if (left >= kChunkHeaderBytes) is_inside = false;
      offset += left;
      continue;
    }
    offset += kChunkHeaderBytes + chunk.payload.size();
    const bool begins = chunk.kind == kFull || chunk.kind == kFirst;
    if (begins) record.clear();
    is_inside = is_inside || begins;
    if (!is_inside) continue;
    record += chunk.payload;
    if (chunk.kind == kFirst || chunk.kind == kMiddle) continue;
    records.push_back(record);
    is_inside = false;
  }
  return records;
}

WandbLog::WandbLog(std::filesystem::path path)
    : file_(std::move(path), RecordFile::Open::kAtEnd) {
  if (file_.size() == 0) file_.append(kFileHeader);
}

void WandbLog::append(std::string_view record) {
  file_.append(wandb_frame(record, static_cast<uint64_t>(file_.size())));
}

}  // namespace lockstep::track
