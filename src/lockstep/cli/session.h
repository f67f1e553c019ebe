// Setup shared by all commands on a recipe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/command_line.h"
#include "lockstep/data/skip_bad_samples.h"
#include "lockstep/engine/batch_size.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/precision.h"
#include "lockstep/recipe.h"
#include "lockstep/run/elastic_job.h"
#include "lockstep/tensor/stream_scope.h"
#include "lockstep/track/console.h"
#include "lockstep/world.h"

namespace lockstep::cli {

// Joins the world, checks all input and builds the task; a collective. Nothing
// is written.
class Session {
 public:
  Session(Recipe& recipe, const CommandLine& line,
          const track::ConsoleOutput& output,
          const base::Environment& environment);

  const World& world() const { return world_; }
  track::Console& console() { return *console_; }
  const engine::BatchSize& batch() const { return batch_; }
  // In an elastic job; else no value.
  const std::optional<run::FirstStart>& first_start() const {
    return first_start_;
  }
  // That the learning rate is scaled for: in an elastic job those of its first
  // start.
  int scaled_processes() const {
    return first_start_ ? first_start_->num_processes : world_.size();
  }
  const std::string& recipe() const { return recipe_; }  // Its name.
  Task& task() const { return *task_; }
  const TaskInfo& info() const { return info_; }
  // The task's data. With --skip_bad_samples unreadable samples are replaced.
  const DataSets& data() const { return data_; }
  // The real images for scores, likewise; null if there are none.
  const std::shared_ptr<const Dataset>& reference() const { return reference_; }
  const base::Environment& environment() const { return environment_; }

  // After the ranks have connected anew, some of them perhaps as other ranks,
  // and more or fewer than before; also called by ranks that are new. A
  // collective.
  void follow_world();

  // Logs how many samples --skip_bad_samples has replaced. A collective.
  void report_bad_samples();

  // Called once. A collective.
  std::unique_ptr<engine::Learner> make_learner(
      std::optional<BucketLayout> bucket_layout = {});

  // Fills the task's feature cache, if it has one, on all ranks; a collective.
  // Call it after the learner was created.
  void fill_cache();

  // Runs `work`; when memory runs out, throws DeviceError with numbers and the
  // task's remedies. `batch_size`: of a micro-batch at that time; empty: as
  // set.
  void with_memory_report(
      const std::function<std::string()>& what,
      const std::function<void()>& work,
      const std::function<int64_t()>& batch_size = {}) const;

 private:
  void resolve_batch();
  // With the processes that there are now.
  void divide_batch();
  void build_task(Recipe& recipe);
  // --on_oom halve would have applied.
  bool could_halve_batch() const;
  std::shared_ptr<const Dataset> skipping(
      const std::shared_ptr<const Dataset>& data);

  const CommandLine& line_;
  base::Environment environment_;
  World world_;
  tensor::StreamScope stream_;  // Everything is computed on it.
  std::unique_ptr<track::Console> console_;
  std::string recipe_;
  engine::Precision precision_;
  engine::BatchSize batch_;
  std::optional<run::FirstStart> first_start_;
  std::unique_ptr<Task> task_;
  TaskInfo info_;
  DataSets data_;
  std::shared_ptr<const Dataset> reference_;
  std::vector<std::shared_ptr<const data::SkipBadSamples>> skipping_;
};

}  // namespace lockstep::cli
