#include "lockstep/comm/shared_region.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

// `ulimit -f` counts for memory files, too: growing beyond it raises SIGXFSZ,
// which ends the process. While this lives, the call fails with EFBIG and
// nothing else happens. Of the calling thread only.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  }
  ~FileSizeSignalBlocked() {
    const int error = errno;  // sigtimedwait() sets it where there is none.
    const timespec now{.tv_sec = 0, .tv_nsec = 0};
    if (!was_pending_) sigtimedwait(&signals_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t signals_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

SharedRegion::~SharedRegion() { unmap(); }

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  fd_ = std::move(other.fd_);
  data_ = std::exchange(other.data_, nullptr);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  return *this;
}

void SharedRegion::unmap() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
  data_ = nullptr;
  mapped_bytes_ = 0;
}

SharedRegion SharedRegion::create(size_t bytes) {
  SharedRegion region;
  region.fd_ = base::FileDescriptor(
      memfd_create("lockstep-exchange", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!region.fd_) {
    throw IoError("cannot make shared memory: " + base::errno_text());
  }
  if (!region.take_memory(0, bytes)) {
    throw IoError("cannot take shared memory: " + base::errno_text());
  }
  if (fcntl(region.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw IoError("cannot seal shared memory: " + base::errno_text());
  }
  return region;
}

SharedRegion SharedRegion::attach(base::FileDescriptor fd, size_t bytes) {
  SharedRegion region;
  region.fd_ = std::move(fd);
  struct stat status{};
  const int seals = fcntl(region.fd(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      fstat(region.fd(), &status) != 0 ||
      static_cast<size_t>(status.st_size) < bytes) {
    throw IoError("another rank sent something that is no shared memory");
  }
  return region;
}

bool SharedRegion::map(size_t bytes) {
  unmap();
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, fd(), 0);
  if (address == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(address);
  mapped_bytes_ = bytes;
  // Gradients do not belong into a core file of every rank; large pages help
  // where the system has them for shared memory.
  madvise(data_, bytes, MADV_DONTDUMP);
  madvise(data_, bytes, MADV_HUGEPAGE);
  return true;
}

bool SharedRegion::take_memory(size_t offset, size_t bytes) const {
  const FileSizeSignalBlocked blocked;
  int result = 0;
  do {
    result = fallocate(fd(), 0, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void SharedRegion::return_memory(size_t offset, size_t bytes) const {
  fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

}  // namespace lockstep::comm
