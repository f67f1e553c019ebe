// The memory behind a status page (base/status.h): a memfd of one page that the
// launcher makes and the worker inherits.
#pragma once

#include <memory>

namespace lockstep::base {

constexpr const char* kStatusMemoryName = "lockstep-status";
constexpr int kStatusMemoryBytes = 4096;

// False for a descriptor that was closed or reused by something between
// launcher and worker.
bool is_status_memory(int fd);

// Shared and writable; null when it cannot be mapped (errno is set).
std::shared_ptr<void> map_status_memory(int fd);

}  // namespace lockstep::base
