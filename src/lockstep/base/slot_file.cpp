#include "lockstep/base/slot_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr const char* kSlotFileName = "lockstep-recovery";
constexpr uint64_t kWhole = 0x31544f4c534b434c;  // "LCKSLOT1"
constexpr off_t kStride = off_t{1} << 28;        // Sparse: costs nothing.

struct SlotHeader {
  uint64_t state = 0;  // kWhole once the bytes behind it are complete.
  int64_t number = 0;
  uint64_t size = 0;
};

off_t place_of(int slot, int version) {
  return kStride * (off_t{2} * slot + version);
}

std::optional<SlotHeader> read_header(int fd, off_t place) {
  SlotHeader header;
  if (pread(fd, &header, sizeof(header), place) != ssize_t{sizeof(header)} ||
      header.state != kWhole) {
    return std::nullopt;
  }
  return header;
}

void write_at(int fd, std::string_view bytes, off_t place) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd, bytes.data(), bytes.size(), place);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw IoError("cannot keep this rank's state in memory: " + errno_text());
    }
    bytes.remove_prefix(static_cast<size_t>(count));
    place += count;
  }
}

void write_header(int fd, const SlotHeader& header, off_t place) {
  write_at(fd, {reinterpret_cast<const char*>(&header), sizeof(header)}, place);
}

}  // namespace

SlotFile::SlotFile() : fd_(memfd_create(kSlotFileName, MFD_CLOEXEC)) {
  if (!fd_) {
    throw IoError("cannot make memory for the state of a rank: " +
                  errno_text());
  }
}

std::optional<SlotFile> SlotFile::from_environment(
    const Environment& environment) {
  const auto number = find_integer(environment, kSlotFileVariable);
  if (!number) return std::nullopt;
  const int fd = static_cast<int>(*number);
  std::error_code error;
  const auto target = std::filesystem::read_symlink(
      "/proc/self/fd/" + std::to_string(fd), error);
  if (!target.string().starts_with(std::string("/memfd:") + kSlotFileName)) {
    return std::nullopt;  // Closed or reused between launcher and worker.
  }
  return SlotFile(FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)));
}

void SlotFile::write(int slot, int64_t number, std::string_view bytes) {
  constexpr auto kRoom = static_cast<size_t>(kStride) - sizeof(SlotHeader);
  if (bytes.size() > kRoom) {
    throw IoError("the state of a rank has " + std::to_string(bytes.size()) +
                  " bytes, more than --recover memory keeps; pass --recover "
                  "restart");
  }
  const off_t place = place_of(slot, static_cast<int>(number & 1));
  write_header(fd_.get(), {}, place);
  write_at(fd_.get(), bytes, place + off_t{sizeof(SlotHeader)});
  write_header(
      fd_.get(),
      {.state = kWhole, .number = number, .size = uint64_t{bytes.size()}},
      place);
}

std::optional<std::string> SlotFile::read(int slot, int64_t number) const {
  const off_t place = place_of(slot, static_cast<int>(number & 1));
  const auto header = read_header(fd_.get(), place);
  if (!header || header->number != number ||
      header->size > uint64_t{kStride} - sizeof(SlotHeader)) {
    return std::nullopt;
  }
  std::string bytes(header->size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd_.get(), bytes.data() + done, bytes.size() - done,
              place + off_t{sizeof(SlotHeader)} + static_cast<off_t>(done));
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

std::optional<int64_t> SlotFile::newest(int slot) const {
  std::optional<int64_t> found;
  for (const int version : {0, 1}) {
    const auto header = read_header(fd_.get(), place_of(slot, version));
    if (header && (!found || header->number > *found)) found = header->number;
  }
  return found;
}

}  // namespace lockstep::base
