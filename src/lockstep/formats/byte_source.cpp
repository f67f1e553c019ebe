#include "lockstep/formats/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::formats {

struct ByteSource::File {
  base::FileDescriptor descriptor;
  std::filesystem::path path;
};

ByteSource::ByteSource(std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), memory_(bytes.data()), size_(bytes.size()) {}

void ByteSource::check_range(uint64_t offset, uint64_t count) const {
  if (offset <= size_ && count <= size_ - offset) return;
  throw FormatError(fmt::format(
      "the bytes end at {}, but {} are expected at {}", size_, count, offset));
}

void ByteSource::read(uint64_t offset, std::span<std::byte> to) const {
  check_range(offset, to.size());
  if (to.empty()) return;
  if (file_ == nullptr) {
    std::copy_n(memory_ + offset, to.size(), to.data());
    return;
  }
  while (!to.empty()) {
    const ssize_t count = pread(file_->descriptor.get(), to.data(), to.size(),
                                static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw IoError(fmt::format("cannot read '{}': {}", file_->path.string(),
                                base::errno_text()));
    }
    if (count == 0) {
      throw IoError(fmt::format(
          "'{}' was cut off while it was read: it had {} bytes when it was "
          "opened and ends before byte {} now. Is another program writing to "
          "it? Try again when that is done; to replace a file, write a new one "
          "and rename it",
          file_->path.string(), size_, offset + 1));
    }
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
}

std::vector<std::byte> ByteSource::take(uint64_t offset, uint64_t count) const {
  check_range(offset, count);
  std::vector<std::byte> bytes(count);
  read(offset, bytes);
  return bytes;
}

std::span<const std::byte> ByteSource::in_memory(uint64_t offset,
                                                 uint64_t count) const {
  check_range(offset, count);
  if (file_ != nullptr || memory_ == nullptr) return {};
  return {memory_ + offset, count};
}

ByteSource open_source(const std::filesystem::path& path) {
  const auto fail = [&] {
    return IoError("cannot read '" + path.string() +
                   "': " + base::errno_text());
  };
  // O_NONBLOCK: a pipe without a writer would hold this process for ever.
  base::FileDescriptor descriptor(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!descriptor || fstat(descriptor.get(), &status) != 0) throw fail();
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    throw fail();
  }
  if (!S_ISREG(status.st_mode)) {
    throw IoError("cannot read '" + path.string() + "': not a regular file");
  }
  ByteSource source;
  source.size_ = static_cast<uint64_t>(status.st_size);
  source.file_ = std::make_shared<const ByteSource::File>(
      ByteSource::File{.descriptor = std::move(descriptor), .path = path});
  return source;
}

}  // namespace lockstep::formats
