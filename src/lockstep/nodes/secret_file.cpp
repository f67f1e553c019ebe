#include "lockstep/nodes/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::nodes {
namespace {

constexpr size_t kFewestBytes = 16;
constexpr size_t kMostBytes = 4096;

[[noreturn]] void refuse_file(const std::filesystem::path& path,
                              const std::string& why) {
  throw ConfigError(fmt::format(
      "the secret file {} {}; make one with 'head -c 32 /dev/urandom | base64 "
      "> FILE; chmod 600 FILE' and give every node the same",
      path.string(), why));
}

void check_rights(const std::filesystem::path& path, int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    refuse_file(path, "is not a regular file");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    refuse_file(path,
                fmt::format("belongs to another user (uid {})", info.st_uid));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw ConfigError(fmt::format(
        "the secret file {} is open to other users (mode {:03o}); chmod 600 it",
        path.string(), info.st_mode & 0777U));
  }
}

}  // namespace

std::string read_secret_file(const std::filesystem::path& path) {
  // A pipe must not block.
  const base::FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) refuse_file(path, "cannot be read: " + base::errno_text());
  check_rights(path, file.get());
  std::array<char, kMostBytes + 1> buffer{};
  const ssize_t count = pread(file.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) refuse_file(path, "cannot be read: " + base::errno_text());
  if (static_cast<size_t>(count) > kMostBytes) {
    refuse_file(path, fmt::format("is longer than {} bytes", kMostBytes));
  }
  const auto secret = base::trim({buffer.data(), static_cast<size_t>(count)});
  if (secret.size() < kFewestBytes) {
    refuse_file(path, fmt::format("is shorter than {} bytes", kFewestBytes));
  }
  return std::string(secret);
}

}  // namespace lockstep::nodes
