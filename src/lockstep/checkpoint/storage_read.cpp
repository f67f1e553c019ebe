#include "lockstep/checkpoint/storage_read.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/checkpoint/new_pages.h"
#include "lockstep/formats/crc32.h"

namespace lockstep::checkpoint {
namespace {

// Read and then checked while it is in the processor's cache.
constexpr size_t kReadPieceBytes = size_t{1} << 20;
// Less is read in the time that a thread takes to start.
constexpr size_t kPiecesPerThread = 16;

struct Piece {
  const StorageRead* whole = nullptr;
  size_t begin = 0;
  size_t size = 0;
  uint32_t crc32 = 0;
};

std::vector<Piece> split_reads(std::span<const StorageRead> reads) {
  std::vector<Piece> pieces;
  for (const StorageRead& read : reads) {
    for (size_t begin = 0; begin < read.to.size(); begin += kReadPieceBytes) {
      pieces.push_back(
          {.whole = &read,
           .begin = begin,
           .size = std::min(kReadPieceBytes, read.to.size() - begin)});
    }
  }
  return pieces;
}

bool is_checked(const StorageRead& read) {
  return read.from->checksum() && read.to.size() == read.from->size();
}

void read_piece(Piece& piece) {
  const StorageRead& whole = *piece.whole;
  const std::span<std::byte> to = whole.to.subspan(piece.begin, piece.size);
  fetch_new_pages(to);
  whole.from->read(whole.offset + piece.begin, to);
  if (is_checked(whole)) piece.crc32 = formats::crc32_of(to);
}

// Pieces of one storage follow each other.
void compare_checksums(std::span<const Piece> pieces) {
  uint32_t crc32 = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    crc32 = formats::joined_crc32(crc32, piece.crc32, piece.size);
    if (i + 1 < pieces.size() && pieces[i + 1].whole == piece.whole) continue;
    if (is_checked(*piece.whole)) piece.whole->from->compare(crc32);
    crc32 = 0;
  }
}

}  // namespace

void read_all(std::span<const StorageRead> reads) {
  std::vector<Piece> pieces = split_reads(reads);
  const auto most_threads =
      static_cast<int64_t>(1 + pieces.size() / kPiecesPerThread);
  base::run_workers(
      std::ssize(pieces),
      std::min<int64_t>(at::get_num_threads(), most_threads),
      [&](int64_t i) { read_piece(pieces[static_cast<size_t>(i)]); });
  compare_checksums(pieces);
}

}  // namespace lockstep::checkpoint
