#include "lockstep/checkpoint/new_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace lockstep::checkpoint {

void fetch_new_pages(std::span<std::byte> memory) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t last = (begin + memory.size()) / kPage * kPage;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
  }
}

}  // namespace lockstep::checkpoint
