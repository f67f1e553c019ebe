// A file mapped for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

struct MappedFile {
  std::shared_ptr<const void> owner;  // unmaps when the last copy goes
  std::span<const std::byte> bytes;
};

// Throws IoError. Replacing the file by a rename leaves the mapping as it is;
// shortening it in place would make later reads fail with SIGBUS, which is why
// Lockstep writes no file in place.
MappedFile map_file(const std::filesystem::path& path);

// Takes the whole pages among `part` out of this process's memory: what was
// read of them counts no longer. They are read again when they are needed. Only
// for files of map_file(); bytes outside the file are left alone.
void give_back_pages(const MappedFile& file, std::span<const std::byte> part);

}  // namespace lockstep
