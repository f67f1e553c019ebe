// Reading a file that another process chose: a pipe, a device or a link in its
// place neither blocks nor leads elsewhere.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::base {

// No value when the path cannot be read, is not a regular file (links are not
// followed) or holds more than `max_bytes`. Never blocks on a pipe.
std::optional<std::string> try_read_regular_file(
    const std::filesystem::path& path, size_t max_bytes);

// The last `max_bytes` of a file, under the same conditions but of any size.
std::optional<std::string> try_read_regular_file_end(
    const std::filesystem::path& path, size_t max_bytes);

}  // namespace lockstep::base
