// What a rank must not lose when it dies: numbered texts in a memory file that
// its launcher keeps and hands to the process that replaces it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"

namespace lockstep::base {

// The descriptor of the file, inherited from the launcher.
constexpr const char* kSlotFileVariable = "LOCKSTEP_RECOVERY_FD";
// "default" where the user has not asked for it: trainings that cannot use the
// file leave it.
constexpr const char* kRecoveryVariable = "LOCKSTEP_RECOVERY";
constexpr const char* kRecoveryByDefault = "default";

// Two versions of each of several texts, one of an even and one of an odd
// number: while one is written, the other stays whole. A process that is killed
// while it writes leaves that one unwritten.
class SlotFile {
 public:
  SlotFile();  // A new, empty one. Throws IoError.
  explicit SlotFile(FileDescriptor fd) : fd_(std::move(fd)) {}

  // No value without a launcher that recovers from memory.
  static std::optional<SlotFile> from_environment(
      const Environment& environment);

  int fd() const { return fd_.get(); }

  // Replaces the version of an even or odd number. Throws IoError when there is
  // no memory left.
  void write(int slot, int64_t number, std::string_view bytes);

  // The version of that number; no value when there is none.
  std::optional<std::string> read(int slot, int64_t number) const;
  // The largest number; no value when there is no version.
  std::optional<int64_t> newest(int slot) const;

 private:
  FileDescriptor fd_;
};

}  // namespace lockstep::base
