// Paths of a LeRobot data set, as meta/info.json describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>

namespace lockstep::conversion {

using LerobotPathFields =
    std::map<std::string, std::variant<int64_t, std::string>>;

// "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet" with its fields
// filled in. Throws FormatError for other fields and formats, and for paths
// that lead out of the data set.
std::filesystem::path lerobot_path(const std::string& pattern,
                                   const LerobotPathFields& fields);

}  // namespace lockstep::conversion
