#include "lockstep/profiler.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/status.h"
#include "lockstep/error.h"
#include "lockstep/profile/profile_table.h"
#include "lockstep/profile/timeline.h"
#include "lockstep/profile/trace_file.h"
#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

namespace kineto = torch::autograd::profiler;

// Values of libkineto's ActivityType; the wheel lacks its header.
constexpr uint8_t kCpuOperation = 0;
constexpr uint8_t kUserScope = 1;
constexpr uint8_t kMemoryCopy = 3;
constexpr uint8_t kMemorySet = 4;
constexpr uint8_t kKernel = 5;
constexpr uint8_t kRuntimeCall = 7;
constexpr uint8_t kDriverCall = 8;

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::set<torch::profiler::impl::ActivityType> activities(c10::Device device) {
  using torch::profiler::impl::ActivityType;
  if (device.is_cpu()) return {ActivityType::CPU};
  return {ActivityType::CPU, ActivityType::CUDA};
}

bool is_device_activity(uint8_t type) {
  return type == kMemoryCopy || type == kMemorySet || type == kKernel;
}

bool is_host_activity(uint8_t type) {
  return type == kCpuOperation || type == kUserScope || type == kRuntimeCall ||
         type == kDriverCall;
}

// Scopes are reported by the thread that ends them.
std::vector<profile::Event> events_of(const kineto::ProfilerResult& result) {
  std::vector<profile::Event> events;
  events.reserve(result.events().size());
  for (const kineto::KinetoEvent& event : result.events()) {
    const uint8_t type = event.activityType();
    const bool is_device =
        is_device_activity(type) && event.deviceType() == c10::kCUDA;
    if (!is_device && !is_host_activity(type)) continue;
    // Started on one thread and ended on another: no place on either.
    if (!is_device && event.isAsync()) continue;
    events.push_back(
        {.name = event.name(),
         .begin_ns = static_cast<int64_t>(event.startNs()),
         .end_ns = static_cast<int64_t>(event.endNs()),
         .thread = is_device ? static_cast<uint64_t>(event.deviceResourceId())
                             : event.startThreadId(),
         .is_device = is_device});
  }
  return events;
}

}  // namespace

struct Profiler::Impl {
  Impl(const World& of, ProfilerConfig with)
      : world(of), config(std::move(with)) {}

  void start() {
    tensor::synchronize(world.device());
    // Half of the warm-up, without its slow beginning.
    if (half_ns > 0) {
      const double half = static_cast<double>(
          std::max<int64_t>(1, config.warmup_steps - config.warmup_steps / 2));
      before_ms =
          1e3 * base::seconds_between(half_ns, base::monotonic_ns()) / half;
    }
    zero_ns = world.run_on_rank0_and_broadcast([] { return unix_ns(); });
    const torch::profiler::impl::ProfilerConfig options(
        torch::profiler::impl::ProfilerState::KINETO);
    kineto::prepareProfiler(options, activities(world.device()));
    kineto::enableProfiler(
        options, activities(world.device()),
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
         at::RecordScope::USER_SCOPE});
    observe();
    recording.emplace();
    recording->begin_ns = unix_ns();
  }

  // A GPU's collectives are kernels with names.
  void observe() {
    if (!world.device().is_cpu()) return;
    world.status().observe_collectives([this] {
      const std::lock_guard lock(mutex);
      collectives.push_back(unix_ns());
    });
  }

  std::unique_ptr<kineto::ProfilerResult> stop() {
    if (world.device().is_cpu()) world.status().observe_collectives({});
    return kineto::disableProfiler();
  }

  void end() {
    tensor::synchronize(world.device());
    recording->end_ns = unix_ns();
    recording->num_steps = num_recorded;
    {
      // The profiler names this thread by its own number.
      RECORD_USER_SCOPE("lockstep::training loop");
    }
    const auto result = stop();
    recording->events = events_of(*result);
    std::ranges::sort(collectives);
    recording->collectives = collectives;
    find_main_thread();
    write();
    is_done = true;
    recording.reset();
  }

  void find_main_thread() {
    auto& events = recording->events;
    const auto mark = std::ranges::find(events, "lockstep::training loop",
                                        &profile::Event::name);
    if (mark == events.end()) return;
    recording->main_thread = mark->thread;
    events.erase(mark);
  }

  void write() {
    const std::filesystem::path& folder = config.folder;
    const auto file_of = [&](int rank) {
      return folder / fmt::format("rank{}.json", rank);
    };
    world.run_on_rank0_and_broadcast([&] { base::make_output_folder(folder); });
    std::string problem;
    try {
      base::write_file_atomically(
          file_of(world.rank()),
          profile::trace_text(*recording, world.rank(), zero_ns));
    } catch (const IoError& error) {
      problem = error.what();
    }
    for (const std::string& text : world.gather_texts(problem)) {
      if (!text.empty()) throw IoError(text);
    }
    const profile::RankProfile own{
        .rank = world.rank(),
        .num_steps = num_recorded,
        .step_ms =
            static_cast<double>(recording->end_ns - recording->begin_ns) / 1e6 /
            static_cast<double>(num_recorded),
        .before_ms = before_ms,
        .time = profile::time_by_kind(*recording)};
    std::vector<profile::RankProfile> ranks;
    for (const std::string& text :
         world.gather_texts(profile::profile_json(own))) {
      ranks.push_back(profile::parse_profile(text));
    }
    world.run_on_rank0_and_broadcast([&] {
      std::vector<std::filesystem::path> files;
      for (int rank = 0; rank < world.size(); ++rank) {
        files.push_back(file_of(rank));
      }
      profile::merge_traces(files, folder / "trace.json");
      base::write_file_atomically(
          folder / "summary.json",
          profile::summary_json(ranks, tensor::device_name(world.device())));
      table =
          profile::profile_table(ranks) +
          "\n  traces for ui.perfetto.dev: " + (folder / "trace.json").string();
    });
  }

  World world;
  ProfilerConfig config;
  int64_t num_steps = 0;  // Calls of step().
  int64_t num_recorded = 0;
  int64_t half_ns = 0;  // In the middle of the warm-up.
  int64_t zero_ns = 0;  // Unix time of the trace's zero, on all ranks.
  double before_ms = 0;
  std::optional<profile::Recording> recording;  // While it records.
  std::mutex mutex;                             // Guards `collectives`.
  std::vector<int64_t> collectives;
  bool is_done = false;
  std::string table;
};

Profiler::Profiler(const World& world, ProfilerConfig config) {
  if (config.num_steps < 1 || config.warmup_steps < 1) {
    throw ConfigError(fmt::format(
        "a profile of {} steps after {} steps of warm-up: both must be at "
        "least 1",
        config.num_steps, config.warmup_steps));
  }
  impl_ = std::make_unique<Impl>(world, std::move(config));
}

Profiler::~Profiler() {
  if (!impl_->recording) return;
  try {
    impl_->stop();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

void Profiler::step() {
  if (impl_->is_done) return;
  const int64_t step = ++impl_->num_steps;
  const int64_t warmup = impl_->config.warmup_steps;
  if (impl_->recording) {
    ++impl_->num_recorded;
    if (impl_->num_recorded == impl_->config.num_steps) impl_->end();
  } else if (step == warmup) {
    impl_->start();
  } else if (step == warmup / 2) {
    tensor::synchronize(impl_->world.device());
    impl_->half_ns = base::monotonic_ns();
  }
}

void Profiler::finish() {
  if (impl_->recording && impl_->num_recorded > 0) impl_->end();
}

bool Profiler::is_done() const { return impl_->is_done; }

const std::string& Profiler::table() const { return impl_->table; }

}  // namespace lockstep
