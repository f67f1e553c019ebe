#include "lockstep/datasets/voc/voc_files.h"

#include <fmt/format.h>

#include <unordered_set>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::voc {
namespace {

namespace fs = std::filesystem;

std::unordered_set<std::string> file_names(const fs::path& folder) {
  std::unordered_set<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename().string());
    }
  } catch (const fs::filesystem_error& problem) {
    throw IoError(fmt::format("cannot read folder '{}': {}", folder.string(),
                              problem.what()));
  }
  return names;
}

std::string name_in_line(std::string_view line) {
  const std::string first(line.substr(0, line.find_first_of(" \t")));
  if (first.find('/') == std::string::npos) return first;
  return fs::path(first).stem().string();
}

}  // namespace

fs::path find_voc_folder(const std::string& path) {
  for (const fs::path& folder : {fs::path(path), fs::path(path) / "VOC2012"}) {
    if (base::is_folder(folder / "ImageSets")) return folder;
  }
  throw ConfigError(fmt::format(
      "--dataset_path '{}' holds no ImageSets, and no VOC2012 with it; it "
      "names the folder of VOC2012, or the one above, or is builtin:scribble "
      "for generated images",
      path));
}

fs::path voc_list(const fs::path& folder, const std::string& name) {
  return folder / "ImageSets" / "SegmentationAug" / (name + ".txt");
}

std::vector<std::string> read_voc_names(const fs::path& list) {
  const std::string text = base::read_file(list);
  std::vector<std::string> names;
  for (const std::string& part : base::split(text, '\n')) {
    const std::string_view line = base::trim(part);
    if (!line.empty()) names.push_back(name_in_line(line));
  }
  if (names.empty()) {
    throw ConfigError(fmt::format(
        "the list '{}' is empty; it names one image per line", list.string()));
  }
  return names;
}

void check_files_exist(const FilesOfNames& files,
                       const std::vector<std::string>& names) {
  const std::string folder = files.folder.string();
  if (!base::is_folder(files.folder)) {
    throw ConfigError(fmt::format("there is no folder '{}' with {}. {}", folder,
                                  files.what, files.remedy));
  }
  const auto found = file_names(files.folder);
  size_t num_missing = 0;
  std::string first;
  for (const std::string& name : names) {
    if (found.contains(name + files.ending)) continue;
    if (num_missing++ == 0) first = name + files.ending;
  }
  if (num_missing == 0) return;
  throw ConfigError(fmt::format(
      "{} of {} files with {} are missing in '{}', '{}' first. {}", num_missing,
      names.size(), files.what, folder, first, files.remedy));
}

}  // namespace lockstep::voc
