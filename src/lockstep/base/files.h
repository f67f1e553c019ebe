// Files: reading whole ones, descriptors, folders. Writing whole ones:
// base/atomic_file.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

// Throws IoError with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// No value when the file cannot be read; for /proc and other files that may
// vanish.
std::optional<std::string> try_read_file(const std::filesystem::path& path);

// False also where the path cannot be looked at.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// A new, empty folder "<parent>/<prefix>XXXXXX". Throws IoError.
std::filesystem::path make_unique_folder(const std::filesystem::path& parent,
                                         std::string_view prefix);

// Makes a folder and those above it; one that is there is fine. Throws IoError
// with the path and the system's reason.
void make_output_folder(const std::filesystem::path& path);

// An owned file descriptor, closed on destruction.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Writes all bytes, through interrupts and short writes. False on error (errno
// is set).
bool write_all(int fd, std::string_view bytes);

// "Permission denied (errno 13)" for the current errno.
std::string errno_text();

}  // namespace lockstep::base
