#include "lockstep/net/job_secret.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::net {
namespace {

constexpr const char* kName = "lockstep-secret";
constexpr size_t kSecretBytes = 32;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

std::string random_bytes() {
  std::string bytes(kSecretBytes, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count =
        getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count > 0) {
      filled += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      throw IoError("cannot make a secret for the job: " + base::errno_text());
    }
  }
  return bytes;
}

// A descriptor of that number may be another file by now.
bool is_secret_file(int fd) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(
      "/proc/self/fd/" + std::to_string(fd), error);
  return target.string().starts_with(std::string("/memfd:") + kName) &&
         (fcntl(fd, F_GET_SEALS) & kSeals) == kSeals;
}

}  // namespace

JobSecret::JobSecret(int port) : JobSecret(port, random_bytes()) {}

// "PORT\n", then the secret.
JobSecret::JobSecret(int port, std::string text)
    : text_(std::move(text)),
      fd_(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const std::string content = std::to_string(port) + "\n" + text_;
  if (!fd_ || !base::write_all(fd_.get(), content) ||
      fcntl(fd_.get(), F_ADD_SEALS, kSeals) != 0) {
    throw IoError("cannot pass a secret to the job: " + base::errno_text());
  }
}

std::optional<std::string> find_job_secret(const base::Environment& environment,
                                           int port) {
  const auto fd = base::find_integer(environment, kSecretVariable);
  if (!fd || !is_secret_file(static_cast<int>(*fd))) return std::nullopt;
  std::array<char, 64> content{};
  const ssize_t count =
      pread(static_cast<int>(*fd), content.data(), content.size(), 0);
  if (count <= 0) return std::nullopt;
  const std::string_view text(content.data(), static_cast<size_t>(count));
  const size_t end = text.find('\n');
  if (end == std::string_view::npos ||
      base::parse_integer(text.substr(0, end)) != port ||
      text.size() - end - 1 != kSecretBytes) {
    return std::nullopt;
  }
  return std::string(text.substr(end + 1));
}

}  // namespace lockstep::net
