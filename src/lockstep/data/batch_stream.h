// The threads behind a stream of batches. Private to data/.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "lockstep/base/status.h"
#include "lockstep/data/batch_request.h"
#include "lockstep/loader.h"

namespace lockstep::data {

// What to load: fixed before the first thread starts.
struct BatchPlan {
  std::shared_ptr<const Dataset> dataset;
  RequestSequence requests;
  uint64_t seed = 0;
  int workers = 0;
  int64_t prefetch_batches = 1;
  bool pin_memory = false;
};

// Batches on the CPU, in order. Workers take single samples, so that one slow
// batch is loaded by all of them; whoever finishes a batch's last sample
// assembles it.
class BatchSource {
 public:
  explicit BatchSource(BatchPlan plan);
  ~BatchSource();

  std::optional<Batch> next();

 private:
  struct Slot {
    // Not that of `samples`: other threads ask for it while they are moved
    // away.
    size_t size() const { return request.indices.size(); }

    BatchRequest request;
    std::vector<Sample> samples;
    size_t taken = 0;     // Samples handed to workers.
    size_t finished = 0;  // Samples loaded.
    bool done = false;
    Batch batch;
    std::exception_ptr error;
  };
  struct Task {
    std::shared_ptr<Slot> slot;
    size_t position = 0;
  };

  void load(Slot& slot, size_t position) const;
  at::Tensor draw_seeds(const BatchRequest& request) const;
  void assemble(Slot& slot) const;
  void fill_window();  // Needs the mutex.
  std::optional<Task> take_task(std::unique_lock<std::mutex>& lock);
  void work();
  void stop();

  const BatchPlan plan_;
  std::mutex mutex_;
  std::condition_variable task_ready_;
  std::condition_variable batch_ready_;
  // Protected by mutex_.
  std::deque<std::shared_ptr<Slot>> window_;
  bool at_end_ = false;
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

// Copies batches to the device, one ahead of the one being used, on a stream of
// its own.
class DevicePrefetch {
 public:
  explicit DevicePrefetch(c10::Device device);
  ~DevicePrefetch();

  std::optional<Batch> next(BatchSource& source);

 private:
  struct Copy;
  std::optional<Batch> take_ready();
  // An error of the batch ahead waits for the call that asks for it.
  void start_next(BatchSource& source);
  void start_copy(std::optional<Batch> batch);

  c10::Device device_;
  std::unique_ptr<Copy> copy_;
  bool started_ = false;
};

class BatchStream {
 public:
  BatchStream(BatchPlan plan, c10::Device device,
              const base::StatusWriter& status)
      : source_(std::move(plan)), prefetch_(device), status_(status) {}

  std::optional<Batch> next();

 private:
  BatchSource source_;
  DevicePrefetch prefetch_;
  base::StatusWriter status_;
};

struct StreamConfig {
  uint64_t seed = 0;             // Seed of the samples' random draws.
  int workers = 2;               // Threads; 0 loads in the caller's thread.
  int64_t prefetch_batches = 2;  // Finished batches kept ahead, at least 1.
  c10::Device device = c10::Device(c10::DeviceType::CPU);
};

// The batches that `requests` asks for.
Batches stream_batches(std::shared_ptr<const Dataset> dataset,
                       RequestSequence requests, const StreamConfig& config,
                       const base::StatusWriter& status);

// Throws ConfigError with the name of a loader's setting that is too small.
void require_at_least(const char* name, int64_t value, int64_t least);

}  // namespace lockstep::data
