#include "lockstep/board/run_store.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <set>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/signal_mask.h"
#include "lockstep/base/workers.h"
#include "lockstep/runs/run_search.h"

namespace lockstep::board {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostGone = 1000;
constexpr size_t kMostCurves = 32;  // Runs whose curves are kept.
// Updates between two searches for new runs, and two looks at runs that ended.
constexpr uint64_t kSearchEvery = 3;
constexpr uint64_t kLookAtEndedEvery = 5;

}  // namespace

struct RunStore::Impl {
  std::shared_ptr<const runs::FolderTree> tree;
  RunStoreConfig config;

  mutable std::mutex mutex = {};  // Guards what follows up to the thread.
  mutable std::condition_variable wake = {};
  bool is_ending = false;
  mutable Clock::time_point asked = Clock::now();
  mutable bool is_woken = false;
  uint64_t update = 0;
  bool is_complete = true;
  std::map<std::string, StoredRun> stored = {};
  std::vector<std::pair<uint64_t, std::string>> gone = {};  // With the update.
  std::vector<std::pair<std::string, std::shared_ptr<CurvesEntry>>> curves =
      {};  // The one asked for last at the end.

  // The thread's own.
  std::map<std::string, runs::RunWatcher> watchers = {};
  std::thread thread = {};

  void note_asked() const { asked = Clock::now(); }

  void run() {
    for (uint64_t round = 0;; ++round) {
      refresh(round);
      refresh_curves();
      std::unique_lock lock(mutex);
      wake.wait_for(lock, config.interval,
                    [&] { return is_ending || is_woken; });
      // Until somebody looks again.
      while (!is_ending && Clock::now() - asked > config.patience) {
        wake.wait_for(lock, config.interval);
      }
      if (is_ending) return;
      is_woken = false;
    }
  }

  void search() {
    const runs::FoundRuns found = runs::find_runs(*tree);
    const std::set<std::string> ids(found.ids.begin(), found.ids.end());
    std::erase_if(watchers,
                  [&](const auto& one) { return !ids.contains(one.first); });
    for (const std::string& id : ids) watchers.try_emplace(id, id);
    const std::lock_guard lock(mutex);
    is_complete = found.is_complete;
    for (auto at = stored.begin(); at != stored.end();) {
      if (ids.contains(at->first)) {
        ++at;
        continue;
      }
      if (gone.size() == kMostGone) gone.erase(gone.begin());
      gone.emplace_back(update + 1, at->first);
      at = stored.erase(at);
    }
  }

  bool is_due(const std::string& id, uint64_t round) const {
    if (round % kLookAtEndedEvery == 0) return true;
    const std::lock_guard lock(mutex);
    const auto known = stored.find(id);
    return known == stored.end() ||
           known->second.summary.state == runs::RunState::kRunning;
  }

  void refresh(uint64_t round) {
    if (round % kSearchEvery == 0) search();
    std::vector<std::pair<const std::string, runs::RunWatcher>*> due;
    for (auto& one : watchers) {
      if (is_due(one.first, round)) due.push_back(&one);
    }
    const runs::LockTable locks = runs::LockTable::of_machine();
    const int64_t now = base::unix_seconds();
    base::run_workers(static_cast<int64_t>(due.size()),
                      due.size() > 1 ? config.num_threads : 1, [&](int64_t i) {
                        auto& [id, watcher] = *due[static_cast<size_t>(i)];
                        store(watcher.update(*tree, locks, now));
                      });
    const std::lock_guard lock(mutex);
    ++update;
  }

  // Runs appear one by one while the first reading goes on.
  void store(runs::RunSummary summary) {
    const std::lock_guard lock(mutex);
    StoredRun& known = stored[summary.id];
    if (known.changed != 0 && known.summary == summary) return;
    known.summary = std::move(summary);
    known.changed = update + 1;
  }

  void refresh_curves() {
    std::vector<std::shared_ptr<CurvesEntry>> wanted;
    {
      const std::lock_guard lock(mutex);
      for (const auto& [id, entry] : curves) wanted.push_back(entry);
    }
    base::run_workers(static_cast<int64_t>(wanted.size()),
                      wanted.size() > 1 ? config.num_threads : 1,
                      [&](int64_t i) {
                        CurvesEntry& entry = *wanted[static_cast<size_t>(i)];
                        const std::lock_guard lock(entry.mutex);
                        entry.curves.update(*tree);
                        entry.is_read = true;
                      });
  }
};

RunStore::RunStore(std::shared_ptr<const runs::FolderTree> tree,
                   RunStoreConfig config)
    : impl_(new Impl{.tree = std::move(tree), .config = config}) {
  const base::AllSignalsBlocked blocked;
  impl_->thread = std::thread([this] { impl_->run(); });
}

RunStore::~RunStore() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->is_ending = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

RunChanges RunStore::changes_since(uint64_t update) const {
  const std::lock_guard lock(impl_->mutex);
  impl_->note_asked();
  // What is stored while an update goes on has its number already, and more may
  // follow: it is sent again.
  RunChanges changes{.update = impl_->update,
                     .is_complete = impl_->is_complete};
  for (const auto& [id, run] : impl_->stored) {
    if (run.changed > update) changes.changed.push_back(run.summary);
  }
  for (const auto& [number, id] : impl_->gone) {
    if (number > update && !impl_->stored.contains(id)) {
      changes.gone.push_back(id);
    }
  }
  return changes;
}

std::optional<runs::RunSummary> RunStore::find(const std::string& id) const {
  const std::lock_guard lock(impl_->mutex);
  impl_->note_asked();
  const auto found = impl_->stored.find(id);
  if (found == impl_->stored.end()) return std::nullopt;
  return found->second.summary;
}

std::shared_ptr<RunStore::CurvesEntry> RunStore::curves_of(
    const std::string& id) {
  const std::lock_guard lock(impl_->mutex);
  impl_->note_asked();
  if (!impl_->stored.contains(id)) return nullptr;
  auto& curves = impl_->curves;
  auto found = std::find_if(curves.begin(), curves.end(),
                            [&](const auto& one) { return one.first == id; });
  if (found == curves.end()) {
    if (curves.size() == kMostCurves) curves.erase(curves.begin());
    curves.emplace_back(id, std::make_shared<CurvesEntry>(id));
    impl_->is_woken = true;
    impl_->wake.notify_all();
  } else {
    std::rotate(found, found + 1, curves.end());
  }
  return curves.back().second;
}

}  // namespace lockstep::board
