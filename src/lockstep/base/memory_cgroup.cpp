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

std::optional<int64_t> number_in(const fs::path& file) {
  return parse_integer(trim(try_read_file(file).value_or("")));
}

int64_t used_bytes_of(const fs::path& folder) {
  auto used = number_in(folder / "memory.current");
  // Version 1 shows a sum over the groups below under another name.
  auto reclaimable = find_entry(folder / "memory.stat", "inactive_file");
  if (!used) {
    used = number_in(folder / "memory.usage_in_bytes");
    reclaimable = find_entry(folder / "memory.stat", "total_inactive_file");
  }
  return std::max<int64_t>(0, used.value_or(0) - reclaimable.value_or(0));
}

}  // namespace

MemoryCgroup::MemoryCgroup(const CgroupFiles& files) {
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

std::optional<MemoryRoom> MemoryCgroup::tightest_room() const {
  std::optional<MemoryRoom> tightest;
  const auto take = [&](std::optional<int64_t> limit, const fs::path& folder) {
    if (!limit || *limit >= kNoLimit) return;
    const MemoryRoom room{.limit_bytes = *limit,
                          .used_bytes = used_bytes_of(folder)};
    if (!tightest || room.left_bytes() < tightest->left_bytes()) {
      tightest = room;
    }
  };
  for (fs::path folder = folder_;; folder = folder.parent_path()) {
    take(number_in(folder / "memory.max"), folder);
    take(number_in(folder / "memory.limit_in_bytes"), folder);
    if (folder == root_ || !folder.has_relative_path()) break;
  }
  // Groups of version 1 above a container's mount.
  take(find_entry(folder_ / "memory.stat", "hierarchical_memory_limit"),
       folder_);
  return tightest;
}

}  // namespace lockstep::base
