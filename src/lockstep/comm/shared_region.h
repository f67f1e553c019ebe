// Memory that one process owns and others map: a memfd.
//
// It has no name: nothing is left behind when a process is killed, and the
// limit of /dev/shm does not count. Addresses are reserved for its whole life,
// so that it can grow without moving; memory is taken piece by piece.
#pragma once

#include <cstddef>

#include "lockstep/base/files.h"

namespace lockstep::comm {

// Movable. The owner grows it; those who attach see what it has grown to.
class SharedRegion {
 public:
  SharedRegion() = default;
  ~SharedRegion();
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // A new region of `bytes`, zero and in memory. It can never shrink, so that
  // no reader finds an end where it expects memory. Throws IoError.
  static SharedRegion create(size_t bytes);

  // The region of another process. Throws IoError when the descriptor is none
  // that was made by create() with at least `bytes`.
  static SharedRegion attach(base::FileDescriptor fd, size_t bytes);

  // Reserves addresses for `bytes` at most. False when there are not as many
  // (ulimit -v); the region can be mapped again with less.
  bool map(size_t bytes);

  int fd() const { return fd_.get(); }
  std::byte* data() const { return data_; }
  size_t mapped_bytes() const { return mapped_bytes_; }

  // Owner: puts memory behind a range, growing the region if needed. False when
  // there is not enough: an answer, where touching it would be SIGBUS.
  bool take_memory(size_t offset, size_t bytes) const;
  // Owner: gives the memory of a range back; it reads as zero from then on.
  void return_memory(size_t offset, size_t bytes) const;

 private:
  void unmap();

  base::FileDescriptor fd_;
  std::byte* data_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace lockstep::comm
