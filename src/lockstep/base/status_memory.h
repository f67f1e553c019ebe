// The memory behind a status page (base/status.h): a memfd of one page that the
// launcher makes and the worker inherits.
#pragma once

#include <cstddef>
#include <memory>

namespace lockstep::base {

constexpr const char* kStatusMemoryName = "lockstep-status";
constexpr int kStatusMemoryBytes = 4096;

// False for a descriptor that was closed or reused by something between
// launcher and worker.
bool is_status_memory(int fd);

// Shared and writable; null when it cannot be mapped (errno is set).
std::shared_ptr<void> map_status_memory(int fd);

// A part of the page at Part::kOffset; keeps the mapping.
template <typename Part>
std::shared_ptr<Part> map_status_part(int fd) {
  static_assert(Part::kOffset + sizeof(Part) <= size_t{kStatusMemoryBytes});
  const auto memory = map_status_memory(fd);
  if (memory == nullptr) return nullptr;
  return {memory, reinterpret_cast<Part*>(
                      static_cast<std::byte*>(memory.get()) + Part::kOffset)};
}

}  // namespace lockstep::base
