// Files written straight to their place, for folders that get their name when
// all of them are written. Others: base/atomic_file.h.
#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::base {

// Makes a file and writes all bytes; not synced. Throws IoError with the path
// and the system's reason, also when the file is there already.
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace lockstep::base
