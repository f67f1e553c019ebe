#include "lockstep/runs/folder_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::runs {
namespace {

constexpr size_t kMostPathBytes = 4096;

// Folders are only passed through; what is behind the last name may be a pipe,
// which O_NONBLOCK opens without waiting.
constexpr int kSafely = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

FileFacts facts_from(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = info.st_size,
          .modified = info.st_mtim.tv_sec};
}

std::string read_from(int file, int64_t offset, size_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t got = pread(file, bytes.data() + have, size - have,
                              offset + static_cast<int64_t>(have));
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace

FolderTree::FolderTree(const std::filesystem::path& root)
    : root_(root),
      folder_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_) return;
  throw ConfigError(fmt::format(
      "{}: {}; name a folder that holds runs, such as the parent of --save_dir",
      root.string(), base::errno_text()));
}

// One name after the other, so that no part of the path can be a link.
base::FileDescriptor FolderTree::open_at(std::string_view path,
                                         int flags) const {
  if (path.empty() || path.size() > kMostPathBytes || path[0] == '/' ||
      path.find('\0') != std::string_view::npos) {
    return {};
  }
  base::FileDescriptor at(
      openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> names = base::split(path, '/');
  for (size_t i = 0; at && i < names.size(); ++i) {
    if (names[i] == "." && names.size() == 1) continue;
    if (names[i].empty() || names[i] == "." || names[i] == "..") return {};
    const bool is_last = i + 1 == names.size();
    at = base::FileDescriptor(
        openat(at.get(), names[i].c_str(),
               kSafely | (is_last ? flags : O_DIRECTORY) | O_RDONLY));
  }
  return at;
}

std::optional<OpenFile> FolderTree::open_file(std::string_view path) const {
  OpenFile opened{.file = open_at(path, 0)};
  struct stat info{};
  if (!opened.file || fstat(opened.file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    return std::nullopt;
  }
  opened.facts = facts_from(info);
  return opened;
}

std::optional<FileFacts> FolderTree::facts_of(std::string_view path) const {
  const auto opened = open_file(path);
  if (!opened) return std::nullopt;
  return opened->facts;
}

std::optional<std::string> FolderTree::read(std::string_view path,
                                            size_t most_bytes) const {
  const auto opened = open_file(path);
  if (!opened || opened->facts.size > static_cast<int64_t>(most_bytes)) {
    return std::nullopt;
  }
  return read_from(opened->file.get(), 0,
                   static_cast<size_t>(opened->facts.size));
}

std::optional<std::string> FolderTree::read_end(std::string_view path,
                                                size_t most_bytes) const {
  const auto opened = open_file(path);
  if (!opened) return std::nullopt;
  const int64_t size =
      std::min(opened->facts.size, static_cast<int64_t>(most_bytes));
  return read_from(opened->file.get(), opened->facts.size - size,
                   static_cast<size_t>(size));
}

std::vector<FolderEntry> FolderTree::list(std::string_view path,
                                          size_t most) const {
  std::vector<FolderEntry> entries;
  base::FileDescriptor folder = open_at(path, O_DIRECTORY);
  if (!folder) return entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(folder.get()),
                                                   closedir);
  if (stream == nullptr) return entries;
  folder.release();
  while (const dirent* entry = readdir(stream.get())) {
    struct stat info{};
    if (entry->d_name[0] == '.' ||
        fstatat(dirfd(stream.get()), entry->d_name, &info,
                AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
      continue;
    }
    if (entries.size() == most) break;
    entries.push_back({.name = entry->d_name,
                       .is_folder = S_ISDIR(info.st_mode),
                       .facts = facts_from(info)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) {
              return a.name < b.name;
            });
  return entries;
}

std::string joined_path(std::string_view folder, std::string_view name) {
  if (folder == ".") return std::string(name);
  return std::string(folder) + "/" + std::string(name);
}

}  // namespace lockstep::runs
