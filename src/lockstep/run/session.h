// What every command on a recipe needs before the first batch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/cli/command_line.h"
#include "lockstep/data/skip_bad_samples.h"
#include "lockstep/engine/batch_size.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/precision.h"
#include "lockstep/track/console.h"
#include "lockstep/world.h"

namespace lockstep {

// Joins the world and checks all input; a collective. Nothing is written.
class Session {
 public:
  Session(Recipe& recipe, const CommandLine& line, const ConsoleOutput& output,
          const Environment& environment);

  const World& world() const { return world_; }
  Console& console() { return *console_; }
  const BatchSize& batch() const { return batch_; }
  const DataSets& data() const { return data_; }
  const TaskInfo& facts() const { return facts_; }
  const Environment& environment() const { return environment_; }

  // Says how many samples --skip_bad_samples has replaced. A collective.
  void report_bad_samples();

  // Seeds, makes the model and what trains it.
  std::unique_ptr<Learner> make_learner(
      std::optional<BucketLayout> bucket_layout = {});

  // Lets the ranks do the recipe's work on its data, until all is done; a
  // collective. The learner is made before.
  void fill_caches();

  // Runs `work`; when memory runs out, throws DeviceError with numbers and the
  // recipe's remedies.
  void with_memory_report(const std::function<std::string()>& what,
                          const std::function<void()>& work) const;

 private:
  void skip_bad_samples();

  Recipe& recipe_;
  const CommandLine& line_;
  Environment environment_;
  World world_;
  std::unique_ptr<Console> console_;
  TaskInfo facts_;
  Precision precision_;
  BatchSize batch_;
  DataSets data_;
  std::vector<std::shared_ptr<const SkipBadSamples>> skipping_;
};

}  // namespace lockstep
