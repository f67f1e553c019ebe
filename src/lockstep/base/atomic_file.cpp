#include "lockstep/base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".partial.";
constexpr size_t kRandomLetters = 6;

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto at = name.rfind(kTemporary);
  return at != std::string::npos && at > 0 &&
         name.size() == at + kTemporary.size() + kRandomLetters;
}

bool is_being_written(const fs::path& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return !file || flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

// Makes a file of a name that was free, and puts the name in `name`. Not by
// mkostemp, which takes the rights from everybody but the owner: so the umask
// and the folder's default rights decide, as for every other file.
int open_temporary(const fs::path& path, std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kTrials = 100;
  std::random_device random;
  for (int trial = 0; trial < kTrials; ++trial) {
    name = path.string() + std::string(kTemporary);
    for (size_t i = 0; i < kRandomLetters; ++i) {
      name += kLetters[random() % kLetters.size()];
    }
    const int fd =
        open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path)
    : path_(path), file_(open_temporary(path, temporary_)) {
  if (!file_) fail();
  // Without a lock (some network file systems) the write goes on all the same.
  flock(file_.get(), LOCK_EX | LOCK_NB);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  if (!write_all(file_.get(), bytes)) fail();
  size_ += bytes.size();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void AtomicFile::commit() {
  if (fsync(file_.get()) != 0 ||
      std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail();
  }
  temporary_.clear();
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const FileDescriptor directory(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: a file system that needs no fsync of folders.
  if (!directory || (fsync(directory.get()) != 0 && errno != EINVAL)) fail();
}

void AtomicFile::fail() const {
  throw IoError("cannot write '" + path_.string() + "': " + errno_text());
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

std::vector<fs::path> remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> removed;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (!entry.is_regular_file(error) || !is_temporary(path) ||
        is_being_written(path)) {
      continue;
    }
    if (fs::remove(path, error)) removed.push_back(path);
  }
  return removed;
}

}  // namespace lockstep::base
