#include "lockstep/data/batch_stream.h"

#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "lockstep/comm/explain.h"
#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

// Keeps the kind of the error and adds what was being loaded.
[[noreturn]] void rethrow_with(const std::string& place) {
  const auto text = [&](const std::exception& error) {
    return fmt::format("{}: {}", place, comm::error_text(error));
  };
  try {
    throw;
  } catch (const FormatError& error) {
    throw FormatError(text(error));
  } catch (const IoError& error) {
    throw IoError(text(error));
  } catch (const ConfigError& error) {
    throw ConfigError(text(error));
  } catch (const std::exception& error) {
    if (comm::is_out_of_memory(error)) throw;
    throw Error(text(error));
  } catch (...) {
    throw Error(place + ": an exception that is not a std::exception");
  }
}

}  // namespace

data::BatchSource::BatchSource(data::BatchPlan plan) : plan_(std::move(plan)) {
  try {
    for (int i = 0; i < plan_.workers; ++i) {
      threads_.emplace_back([this] { work(); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw IoError(fmt::format("cannot start {} loader threads: {}",
                              plan_.workers, error.what()));
  }
}

data::BatchSource::~BatchSource() { stop(); }

void data::BatchSource::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  task_ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void data::BatchSource::load(Slot& slot, size_t position) const {
  const int64_t index = slot.request.indices[position];
  try {
    slot.samples[position] = plan_.dataset->get(
        index, sample_seed(plan_.seed, slot.request.epoch, index));
  } catch (...) {
    rethrow_with(fmt::format("sample {} of the data set", index));
  }
}

at::Tensor data::BatchSource::draw_seeds(
    const data::BatchRequest& request) const {
  at::Tensor seeds =
      at::empty({static_cast<int64_t>(request.indices.size())}, at::kLong);
  auto* out = seeds.mutable_data_ptr<int64_t>();
  for (const int64_t index : request.indices) {
    *out++ =
        static_cast<int64_t>(sample_seed(plan_.seed, request.epoch, index));
  }
  return seeds;
}

void data::BatchSource::assemble(Slot& slot) const {
  try {
    Batch& batch = slot.batch;
    batch.tensors = plan_.dataset->collate(std::move(slot.samples));
    batch.seeds = draw_seeds(slot.request);
    batch.next = slot.request.next;
    batch.is_filler = slot.request.is_filler;
    batch.indices = slot.request.indices;
    batch.step = slot.request.step;
    batch.micro_batch = slot.request.micro_batch;
    if (!plan_.pin_memory) return;
    for (at::Tensor& tensor : batch.tensors) tensor = tensor.pin_memory();
    batch.seeds = batch.seeds.pin_memory();
  } catch (...) {
    rethrow_with(fmt::format("making a batch of samples {}",
                             fmt::join(slot.request.indices, ", ")));
  }
}

void data::BatchSource::fill_window() {
  const auto limit = static_cast<size_t>(plan_.prefetch_batches);
  while (window_.size() < limit && !at_end_) {
    auto request = plan_.requests();
    at_end_ = !request;
    if (at_end_) return;
    auto slot = std::make_shared<Slot>();
    slot->request = *std::move(request);
    slot->samples.resize(slot->request.indices.size());
    window_.push_back(std::move(slot));
  }
}

std::optional<data::BatchSource::Task> data::BatchSource::take_task(
    std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    fill_window();
    for (const auto& slot : window_) {
      if (slot->taken < slot->size()) {
        return Task{slot, slot->taken++};
      }
    }
    task_ready_.wait(lock);
  }
  return std::nullopt;
}

void data::BatchSource::work() {
  std::unique_lock lock(mutex_);
  while (const auto task = take_task(lock)) {
    Slot& slot = *task->slot;
    lock.unlock();
    std::exception_ptr error;
    try {
      load(slot, task->position);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !slot.error) slot.error = error;
    if (++slot.finished < slot.size()) continue;
    // Only this thread touches the slot until it is marked done.
    lock.unlock();
    if (!slot.error) {
      try {
        assemble(slot);
      } catch (...) {
        slot.error = std::current_exception();
      }
    }
    lock.lock();
    slot.done = true;
    batch_ready_.notify_all();
  }
}

// A batch that fails is given up, as a good one is given out: the next call
// gives the next one.
std::optional<Batch> data::BatchSource::next() {
  std::unique_lock lock(mutex_);
  fill_window();
  if (window_.empty()) return std::nullopt;
  const auto slot = window_.front();
  if (plan_.workers == 0) {
    window_.pop_front();
    for (size_t i = 0; i < slot->size(); ++i) load(*slot, i);
    assemble(*slot);
    return std::move(slot->batch);
  }
  batch_ready_.wait(lock, [&] { return slot->done; });
  window_.pop_front();
  lock.unlock();
  task_ready_.notify_all();
  if (slot->error) std::rethrow_exception(slot->error);
  return std::move(slot->batch);
}

Batches::Batches(std::unique_ptr<data::BatchStream> stream)
    : stream_(std::move(stream)) {}
Batches::~Batches() = default;
std::optional<Batch> Batches::next() {
  // For the profiler.
  RECORD_USER_SCOPE("lockstep::data");
  return stream_->next();
}

Batches data::stream_batches(std::shared_ptr<const Dataset> dataset,
                             data::RequestSequence requests,
                             const data::StreamConfig& config,
                             const base::StatusWriter& status) {
  return Batches(std::make_unique<data::BatchStream>(
      data::BatchPlan{.dataset = std::move(dataset),
                      .requests = std::move(requests),
                      .seed = config.seed,
                      .workers = config.workers,
                      .prefetch_batches = config.prefetch_batches,
                      .pin_memory = !config.device.is_cpu()},
      config.device, status));
}

void data::require_at_least(const char* name, int64_t value, int64_t least) {
  if (value >= least) return;
  throw ConfigError(fmt::format("loader: {} is {}; it must be at least {}",
                                name, value, least));
}

}  // namespace lockstep
