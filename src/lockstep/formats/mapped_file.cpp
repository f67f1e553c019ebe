#include "lockstep/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

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

}  // namespace lockstep
