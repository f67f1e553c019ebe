// Captures training steps in CUDA graphs, one per shape of their batches, and
// replays them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/engine/step_timer.h"
#include "lockstep/tensor/cuda_graph.h"
#include "lockstep/world.h"

namespace lockstep::engine {

struct StepRecorderConfig {
  bool enabled = true;
  // The Reducer of DDP rebuilds its buckets in step 2 and times steps 1 to 10.
  int64_t num_eager_steps = 12;
  // Each keeps its inputs and its launches; intermediate memory is shared.
  size_t max_graphs = 16;
  // A graph that was not replayed in so many steps makes room for another.
  int64_t max_idle_steps = 1000;
  size_t max_shapes = 256;  // Remembered, with a graph or without.
};

// The part of a step that is captured must launch the same for equal shapes: it
// reads nothing back from the GPU, and what it uses besides its batches keeps
// its address. The first steps, shapes seen for the first time and steps in
// which a rank has no samples left run eagerly. Not thread-safe; all calls on
// one stream that is not the default stream.
class StepRecorder {
 public:
  struct Work {
    // Runs on the device only; for a graph with batches of its own.
    std::function<void(const std::vector<Batch>&)> run = {};
    // Undoes what an exception left behind: run() may be called again.
    std::function<void()> abandon = {};
    bool can_be_captured = true;
  };

  StepRecorder(const World& world, StepTimer& timer,
               const StepRecorderConfig& config);
  ~StepRecorder();

  // False on a CPU and after a step that could not be captured.
  bool is_enabled() const { return config_.enabled; }

  // One step: calls the work, or replays what it launched.
  void run(const std::vector<Batch>& batches, const Work& work);

  // Drops all graphs with their memory, after a step that was abandoned. Later
  // steps are captured anew.
  void restart();

  // Why steps are not captured; empty unless a capture failed since the last
  // call.
  std::string take_problem();

  // Graphs that are replayed.
  size_t num_graphs() const;
  int64_t num_replays() const { return num_replays_; }

 private:
  struct Entry;

  bool is_time_to_capture() const;
  bool has_room_for_graph();
  Entry& entry_of(const std::vector<Batch>& batches);
  void run_eagerly(const std::vector<Batch>& batches, const Work& work);
  void capture(Entry& entry, const std::vector<Batch>& batches,
               const Work& work);
  void replay(Entry& entry, const std::vector<Batch>& batches);
  void end_failed_capture(Entry& entry, const tensor::CudaGraph::Capture& end);
  void wait_for_reducer();

  World world_;
  StepTimer& timer_;
  StepRecorderConfig config_;
  std::vector<std::unique_ptr<Entry>> entries_;  // The last used one first.
  int64_t num_runs_ = 0;
  int64_t num_steps_ = 0;      // That went through the Reducer.
  int64_t num_abandoned_ = 0;  // Abandoned ones, which may not be counted.
  int64_t first_to_capture_ = 0;
  int64_t num_replays_ = 0;
  std::string problem_;
};

}  // namespace lockstep::engine
