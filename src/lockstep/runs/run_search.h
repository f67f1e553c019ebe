// Finds the run folders below a folder.
#pragma once

#include <string>
#include <vector>

#include "lockstep/runs/folder_tree.h"

namespace lockstep::runs {

struct FoundRuns {
  std::vector<std::string> ids = {};  // By name; "." for the folder itself.
  bool is_complete = true;            // False: there are more than are shown.
};

// A run folder holds metrics.jsonl, run.json or a config.yaml of Lockstep. At
// most 5,000 runs, six levels down, not inside of other runs, hidden folders
// and links.
FoundRuns find_runs(const FolderTree& tree);

}  // namespace lockstep::runs
