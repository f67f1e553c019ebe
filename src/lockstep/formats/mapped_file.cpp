#include "lockstep/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"

namespace lockstep {

MappedFile map_file(const std::filesystem::path& path) {
  const auto fail = [&] {
    return IoError("cannot read '" + path.string() + "': " + errno_text());
  };
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || fstat(file.get(), &status) != 0) throw fail();
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    throw fail();
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return {};  // mmap refuses it
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) throw fail();
  const std::shared_ptr<const void> owner(
      memory, [size](void* mapped) { munmap(mapped, size); });
  return {.owner = owner,
          .bytes = {static_cast<const std::byte*>(memory), size}};
}

void give_back_pages(const MappedFile& file, std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = [](const std::byte* place) {
    return reinterpret_cast<uintptr_t>(place);
  };
  const std::byte* const file_end = file.bytes.data() + file.bytes.size();
  const uintptr_t begin =
      std::max(address(part.data()), address(file.bytes.data()));
  const uintptr_t end =
      std::min(address(part.data() + part.size()), address(file_end));
  const uintptr_t first = (begin + page - 1) / page * page;
  // The file's last page belongs to it alone.
  const uintptr_t last = end == address(file_end) ? end : end / page * page;
  if (first >= last) return;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace lockstep
