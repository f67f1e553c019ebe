#include "lockstep/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/files.h"

namespace lockstep::base {
namespace {

struct OpenFile {
  FileDescriptor descriptor;
  size_t bytes = 0;
};

std::optional<OpenFile> open_regular(const std::filesystem::path& path) {
  FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  return OpenFile{.descriptor = std::move(file),
                  .bytes = static_cast<size_t>(info.st_size)};
}

// At most `bytes`, even if the file grows.
std::optional<std::string> read_part(const OpenFile& file, size_t offset,
                                     size_t bytes) {
  std::string text(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count =
        pread(file.descriptor.get(), text.data() + done, bytes - done,
              static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace

std::optional<std::string> try_read_regular_file(
    const std::filesystem::path& path, size_t max_bytes) {
  const auto file = open_regular(path);
  if (!file || file->bytes > max_bytes) return std::nullopt;
  return read_part(*file, 0, file->bytes);
}

std::optional<std::string> try_read_regular_file_end(
    const std::filesystem::path& path, size_t max_bytes) {
  const auto file = open_regular(path);
  if (!file) return std::nullopt;
  const size_t bytes = std::min(file->bytes, max_bytes);
  return read_part(*file, file->bytes - bytes, bytes);
}

}  // namespace lockstep::base
