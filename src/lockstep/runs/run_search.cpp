#include "lockstep/runs/run_search.h"

#include <algorithm>

#include "lockstep/runs/run_files.h"
#include "lockstep/track/run_file.h"

namespace lockstep::runs {
namespace {

constexpr int kMostLevels = 6;
constexpr size_t kMostRuns = 5000;
constexpr size_t kMostFolders = 50'000;
constexpr size_t kMostEntries = 100'000;

class Search {
 public:
  explicit Search(const FolderTree& tree) : tree_(tree) {}

  void visit(const std::string& folder, int level) {
    if (found.ids.size() == kMostRuns || ++num_folders_ > kMostFolders) {
      found.is_complete = false;
      return;
    }
    const std::vector<FolderEntry> entries = tree_.list(folder, kMostEntries);
    if (is_run(folder, entries)) {
      found.ids.push_back(folder);
      return;
    }
    if (level == kMostLevels) return;
    for (const FolderEntry& entry : entries) {
      if (entry.is_folder) visit(joined_path(folder, entry.name), level + 1);
    }
  }

  FoundRuns found = {};

 private:
  bool is_run(const std::string& folder,
              const std::vector<FolderEntry>& entries) const {
    const auto has = [&](const char* name) {
      return std::any_of(entries.begin(), entries.end(),
                         [&](const FolderEntry& entry) {
                           return !entry.is_folder && entry.name == name;
                         });
    };
    if (has(kMetricsFile) || has(track::kRunFile)) return true;
    if (!has(kConfigFile)) return false;
    const auto config =
        tree_.read(joined_path(folder, kConfigFile), kMostConfigBytes);
    return config && config->find("# recipe: ") != std::string::npos;
  }

  const FolderTree& tree_;
  size_t num_folders_ = 0;
};

}  // namespace

FoundRuns find_runs(const FolderTree& tree) {
  Search search(tree);
  search.visit(".", 0);
  return std::move(search.found);
}

}  // namespace lockstep::runs
