#include "lockstep/engine/step_recorder.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "lockstep/base/status.h"
#include "lockstep/tensor/cuda_library.h"
#include "lockstep/tensor/device.h"

namespace lockstep::engine {
namespace {

// What a captured step takes for granted about its batches.
struct StepShape {
  std::vector<std::vector<int64_t>> sizes = {};
  std::vector<at::ScalarType> dtypes = {};
  int64_t num_samples = 0;  // Over all ranks.

  bool operator==(const StepShape&) const = default;
};

StepShape shape_of(const std::vector<Batch>& batches) {
  StepShape shape{.num_samples = batches.front().step.num_samples};
  for (const Batch& batch : batches) {
    for (const at::Tensor& tensor : batch.tensors) {
      shape.sizes.push_back(tensor.sizes().vec());
      shape.dtypes.push_back(tensor.scalar_type());
    }
    shape.sizes.push_back(batch.seeds.sizes().vec());
  }
  return shape;
}

bool has_filler(const std::vector<Batch>& batches) {
  return std::ranges::any_of(
      batches, [](const Batch& batch) { return batch.is_filler; });
}

std::vector<Batch> copies_of(const std::vector<Batch>& batches) {
  std::vector<Batch> copies = batches;
  for (Batch& copy : copies) {
    for (at::Tensor& tensor : copy.tensors) tensor = tensor.clone();
    copy.seeds = copy.seeds.clone();
  }
  return copies;
}

void copy_inputs(const std::vector<Batch>& from, std::vector<Batch>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    for (size_t k = 0; k < from[i].tensors.size(); ++k) {
      to[i].tensors[k].copy_(from[i].tensors[k]);
    }
    to[i].seeds.copy_(from[i].seeds);
  }
}

// The status page shows the collectives of a replay as running until it is
// done, so that the launcher sees when they never end.
struct RunningReplay {
  base::StatusWriter status;
  base::StatusWriter::Captured collectives;

  static void finish(void* context) {
    const std::unique_ptr<RunningReplay> self(
        static_cast<RunningReplay*>(context));
    self->status.finish_captured(self->collectives);
  }
};

void note_collectives(base::StatusWriter status,
                      const base::StatusWriter::Captured& collectives) {
  if (collectives.count == 0) return;
  status.start_captured(collectives);
  tensor::cuda_function<void(void (*)(void*), void*)>(
      "lockstep_cuda_call_when_done")(&RunningReplay::finish,
                                      new RunningReplay{status, collectives});
}

}  // namespace

struct StepRecorder::Entry {
  StepShape shape;
  int64_t last_run = 0;
  bool was_seen = false;
  bool is_refused = false;
  // A capture found no memory beside what steps before it had left cached.
  bool needs_room = false;
  // The graph reads its inputs from here.
  std::vector<Batch> batches = {};
  std::shared_ptr<StepEvents> events = {};
  base::StatusWriter::Captured collectives = {};
  std::unique_ptr<tensor::CudaGraph> graph = {};
};

StepRecorder::StepRecorder(const World& world, StepTimer& timer,
                           const StepRecorderConfig& config)
    : world_(world),
      timer_(timer),
      config_(config),
      first_to_capture_(config.num_eager_steps) {
  if (world.device().is_cpu()) config_.enabled = false;
}

StepRecorder::~StepRecorder() = default;

size_t StepRecorder::num_graphs() const {
  return static_cast<size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry->graph != nullptr; }));
}

std::string StepRecorder::take_problem() { return std::exchange(problem_, {}); }

// The Reducer times every 100th step with events of its own, which must not be
// captured. Its count may be behind by the steps that were abandoned.
bool StepRecorder::is_time_to_capture() const {
  constexpr int64_t kTimedSteps = 100;
  const int64_t in_cycle = num_steps_ % kTimedSteps;
  return num_steps_ >= first_to_capture_ && in_cycle > num_abandoned_ &&
         in_cycle != kTimedSteps - 1;
}

StepRecorder::Entry& StepRecorder::entry_of(const std::vector<Batch>& batches) {
  StepShape shape = shape_of(batches);
  const auto at = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->shape == shape; });
  if (at != entries_.end()) {
    std::rotate(entries_.begin(), at, at + 1);
    return *entries_.front();
  }
  if (entries_.size() >= config_.max_shapes) entries_.pop_back();
  entries_.insert(entries_.begin(),
                  std::make_unique<Entry>(Entry{.shape = std::move(shape)}));
  return *entries_.front();
}

bool StepRecorder::has_room_for_graph() {
  if (num_graphs() < config_.max_graphs) return true;
  const auto oldest = std::ranges::find_if(
      entries_.rbegin(), entries_.rend(),
      [](const auto& entry) { return entry->graph != nullptr; });
  if (oldest == entries_.rend() ||
      num_runs_ - (*oldest)->last_run <= config_.max_idle_steps) {
    return false;
  }
  entries_.erase(std::next(oldest).base());
  return true;
}

void StepRecorder::run(const std::vector<Batch>& batches, const Work& work) {
  if (!config_.enabled || has_filler(batches)) {
    return run_eagerly(batches, work);
  }
  Entry& entry = entry_of(batches);
  const bool wants_graph = entry.was_seen && !entry.is_refused &&
                           entry.graph == nullptr && work.can_be_captured;
  entry.was_seen = true;
  entry.last_run = ++num_runs_;
  if (wants_graph && is_time_to_capture() && has_room_for_graph()) {
    capture(entry, batches, work);
  }
  if (entry.graph != nullptr) return replay(entry, batches);
  run_eagerly(batches, work);
}

void StepRecorder::run_eagerly(const std::vector<Batch>& batches,
                               const Work& work) {
  ++num_steps_;
  work.run(batches);
}

void StepRecorder::capture(Entry& entry, const std::vector<Batch>& batches,
                           const Work& work) {
  const tensor::CudaGraph* shares_memory = nullptr;
  for (const auto& other : entries_) {
    if (other->graph) shares_memory = other->graph.get();
  }
  ++num_steps_;
  if (entry.needs_room) tensor::release_cached_memory(world_.device());
  entry.batches = copies_of(batches);
  entry.events = timer_.start_events();
  base::StatusWriter status = world_.status();
  status.begin_capture();
  auto captured = tensor::CudaGraph::capture([&] { work.run(entry.batches); },
                                             shares_memory);
  entry.collectives = status.end_capture();
  entry.graph = std::move(captured.graph);
  if (entry.graph != nullptr) return;
  work.abandon();
  end_failed_capture(entry, captured);
  timer_.start_events();
}

void StepRecorder::end_failed_capture(Entry& entry,
                                      const tensor::CudaGraph::Capture& end) {
  if (end.is_out_of_memory && !entry.needs_room) {
    entry.needs_room = true;
  } else {
    entry.is_refused = true;
    problem_ = end.problem;
  }
  wait_for_reducer();
  for (const auto& other : entries_) {
    other->graph.reset();
    other->batches.clear();
    other->events.reset();
  }
  if (end.is_out_of_memory) tensor::release_cached_memory(world_.device());
}

void StepRecorder::restart() {
  if (!config_.enabled) return;
  wait_for_reducer();
  entries_.clear();
}

// A Reducer whose step is abandoned makes new buckets in the next steps: graphs
// would write to the old ones.
void StepRecorder::wait_for_reducer() {
  tensor::synchronize(world_.device());
  ++num_abandoned_;
  first_to_capture_ = num_steps_ + config_.num_eager_steps;
}

void StepRecorder::replay(Entry& entry, const std::vector<Batch>& batches) {
  copy_inputs(batches, entry.batches);
  timer_.use_events(entry.events);
  entry.graph->replay();
  note_collectives(world_.status(), entry.collectives);
  ++num_replays_;
}

}  // namespace lockstep::engine
