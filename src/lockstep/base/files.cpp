#include "lockstep/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

void require(bool succeeded, const char* what,
             const std::filesystem::path& path) {
  if (succeeded) return;
  throw IoError(std::string("cannot ") + what + " '" + path.string() +
                "': " + errno_text());
}

}  // namespace

std::string errno_text() {
  const int number = errno;
  return std::string(std::strerror(number)) + " (errno " +
         std::to_string(number) + ")";
}

// Not by a stream: those throw when a file of /proc vanishes while it is read.
std::optional<std::string> try_read_file(const std::filesystem::path& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count == 0) return bytes;
    if (count > 0) {
      bytes.append(buffer.data(), static_cast<size_t>(count));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  auto bytes = try_read_file(path);
  require(bytes.has_value(), "read", path);
  return *std::move(bytes);
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::filesystem::path make_unique_folder(const std::filesystem::path& parent,
                                         std::string_view prefix) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string path = (parent / prefix).string() + "XXXXXX";
  require(mkdtemp(path.data()) != nullptr, "create folder", path);
  return path;
}

void make_output_folder(const std::filesystem::path& path) {
  if (path.empty() || is_folder(path)) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return;
  throw IoError("cannot make the folder '" + path.string() +
                "': " + error.message() + "; choose another place");
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace lockstep::base
