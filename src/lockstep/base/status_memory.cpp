#include "lockstep/base/status_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace lockstep::base {

bool is_status_memory(int fd) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(
      "/proc/self/fd/" + std::to_string(fd), error);
  if (!target.string().starts_with(std::string("/memfd:") +
                                   kStatusMemoryName)) {
    return false;
  }
  struct stat info{};
  return fstat(fd, &info) == 0 && info.st_size == off_t{kStatusMemoryBytes};
}

std::shared_ptr<void> map_status_memory(int fd) {
  void* memory = mmap(nullptr, kStatusMemoryBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {memory, [](void* mapped) { munmap(mapped, kStatusMemoryBytes); }};
}

}  // namespace lockstep::base
