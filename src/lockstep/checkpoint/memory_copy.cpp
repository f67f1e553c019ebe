#include "lockstep/checkpoint/memory_copy.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "lockstep/checkpoint/new_pages.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kCopyPieceBytes = size_t{2} << 20;
// Less is copied in the time that a thread takes to start.
constexpr size_t kBytesPerThread = size_t{16} << 20;

std::vector<MemoryCopy> split_copies(std::span<const MemoryCopy> copies) {
  std::vector<MemoryCopy> pieces;
  for (const MemoryCopy& copy : copies) {
    for (size_t begin = 0; begin < copy.num_bytes; begin += kCopyPieceBytes) {
      pieces.push_back(
          {.to = static_cast<std::byte*>(copy.to) + begin,
           .from = static_cast<const std::byte*>(copy.from) + begin,
           .num_bytes = std::min(kCopyPieceBytes, copy.num_bytes - begin),
           .is_new = copy.is_new});
    }
  }
  return pieces;
}

}  // namespace

// Not by at::parallel_for(): its threads get equal parts, and all wait for the
// one on a busy core.
void copy_all(std::span<const MemoryCopy> copies) {
  const std::vector<MemoryCopy> pieces = split_copies(copies);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      if (pieces[i].is_new) {
        fetch_new_pages(
            {static_cast<std::byte*>(pieces[i].to), pieces[i].num_bytes});
      }
      std::memcpy(pieces[i].to, pieces[i].from, pieces[i].num_bytes);
    }
  };
  const size_t num_threads =
      std::min<size_t>(static_cast<size_t>(at::get_num_threads()),
                       1 + pieces.size() * kCopyPieceBytes / kBytesPerThread);
  std::vector<std::jthread> helpers;
  while (helpers.size() + 1 < num_threads) helpers.emplace_back(work);
  work();
}

}  // namespace lockstep::checkpoint
