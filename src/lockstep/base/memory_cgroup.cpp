#include "lockstep/base/memory_cgroup.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::base {
namespace {

namespace fs = std::filesystem;

// "No limit" of version 1 is the largest multiple of a page.
constexpr int64_t kNoLimit = int64_t{1} << 60;

struct Membership {
  bool is_version1 = false;
  std::string path = "/";
};

// Lines "4:memory:/job" of version 1, "0::/job" of version 2.
Membership read_membership(const fs::path& file) {
  Membership found;
  for (const std::string& line :
       split(try_read_file(file).value_or(""), '\n')) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers =
        split(line.substr(first + 1, second - first - 1), ',');
    const bool is_version1 =
        std::ranges::find(controllers, "memory") != controllers.end();
    const bool is_version2 = line.starts_with("0::");
    if (!is_version1 && !is_version2) continue;
    if (found.is_version1) continue;  // It has the controller.
    found = {.is_version1 = is_version1, .path = line.substr(second + 1)};
  }
  return found;
}

// The number behind "NAME " at the start of a line.
std::optional<int64_t> find_entry(const fs::path& file, std::string_view name) {
  for (const std::string& line :
       split(try_read_file(file).value_or(""), '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == name) return parse_integer(words[1]);
  }
  return std::nullopt;
}

}  // namespace

MemoryCgroup::MemoryCgroup(CgroupFiles files) {
  const Membership own = read_membership(files.membership);
  root_ = own.is_version1 ? files.root / "memory" : files.root;
  const char* name = own.is_version1 ? "memory.oom_control" : "memory.events";
  folder_ = root_ / fs::path(own.path).relative_path();
  std::error_code error;
  // In a container the mount often begins at the group itself.
  if (!fs::exists(folder_ / name, error)) folder_ = root_;
  counter_ = folder_ / name;
}

std::optional<int64_t> MemoryCgroup::num_oom_kills() const {
  return find_entry(counter_, "oom_kill");
}

std::optional<int64_t> MemoryCgroup::limit_bytes() const {
  std::optional<int64_t> lowest =
      find_entry(folder_ / "memory.stat", "hierarchical_memory_limit");
  for (fs::path folder = folder_;; folder = folder.parent_path()) {
    const auto text = try_read_file(folder / "memory.max");
    const auto limit = parse_integer(trim(text.value_or("")));
    if (limit) lowest = std::min(lowest.value_or(*limit), *limit);
    if (folder == root_ || !folder.has_relative_path()) break;
  }
  return lowest && *lowest < kNoLimit ? lowest : std::nullopt;
}

}  // namespace lockstep::base
