// What a run folder holds beside its numbers: samples, checkpoints, settings,
// the end of its log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/runs/folder_tree.h"
#include "lockstep/runs/run_summary.h"

namespace lockstep::board {

// {"samples":[{"path":...,"step":...,"time":...}],"checkpoints":[...],
//  "profile":{...} or null,
//  "settings":[[name,value],...],"settings_problem":""}; the newest samples and
// checkpoints first.
std::string details_json(const runs::FolderTree& tree,
                         const runs::RunSummary& run);

// The trace of --profile; no value when there is none.
std::optional<runs::OpenFile> open_trace(const runs::FolderTree& tree,
                                         const runs::RunSummary& run);

// The last lines of the run's log; empty when it has none.
std::string log_end(const runs::FolderTree& tree, const runs::RunSummary& run);

struct SampleFile {
  std::string type = {};  // "image/png"
  std::string bytes = {};
};

// A file that details_json() lists as a sample; no value for any other path.
std::optional<SampleFile> read_sample(const runs::FolderTree& tree,
                                      const runs::RunSummary& run,
                                      std::string_view path);

}  // namespace lockstep::board
