// The runs that a board shows, kept up to date by a thread of its own while
// somebody looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/runs/folder_tree.h"
#include "lockstep/runs/run_curves.h"
#include "lockstep/runs/run_summary.h"

namespace lockstep::board {

struct RunStoreConfig {
  std::chrono::milliseconds interval = std::chrono::seconds(1);
  // Nothing is read when nobody asked for this long.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  int64_t num_threads = 2;  // For the first read.
};

// A run and the number of the update in which it last changed.
struct StoredRun {
  runs::RunSummary summary = {};
  uint64_t changed = 0;
};

struct RunChanges {
  std::vector<runs::RunSummary> changed = {};
  std::vector<std::string> gone = {};
  uint64_t update = 0;      // The number to ask with next.
  bool is_complete = true;  // False: there are more runs than are shown.
};

// All functions may be called by any thread and do not wait for files.
class RunStore {
 public:
  RunStore(std::shared_ptr<const runs::FolderTree> tree, RunStoreConfig config);
  ~RunStore();  // Waits for the reading under way.
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  // What changed after that update; 0: all.
  RunChanges changes_since(uint64_t update) const;
  std::optional<runs::RunSummary> find(const std::string& id) const;

  // Calls `use` with the curves of a run. False while they are being read: ask
  // again. Only the curves of the runs asked for last are kept.
  template <typename Use>
  bool with_curves(const std::string& id, const Use& use) {
    const auto entry = curves_of(id);
    if (entry == nullptr) return false;
    const std::unique_lock lock(entry->mutex, std::try_to_lock);
    if (!lock.owns_lock() || !entry->is_read) return false;
    use(static_cast<const runs::RunCurves&>(entry->curves));
    return true;
  }

 private:
  struct CurvesEntry {
    explicit CurvesEntry(const std::string& id) : curves(id) {}
    std::mutex mutex;  // Guards what follows.
    runs::RunCurves curves;
    bool is_read = false;
  };
  struct Impl;
  // Null for a run that does not exist.
  std::shared_ptr<CurvesEntry> curves_of(const std::string& id);

  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::board
