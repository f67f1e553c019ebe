#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/cli/probe_command.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"
#include "lockstep/world.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kSmallCount = 1024;               // 4 KiB
constexpr int64_t kLargeCount = int64_t{16} << 20;  // 64 MiB
constexpr int64_t kCopyCount = int64_t{64} << 20;   // 256 MiB
constexpr int kSmallTurns = 200;
constexpr int kLargeTurns = 5;
constexpr const char* kStallVariable = "LOCKSTEP_DOCTOR_STALL";

// Seconds of one call, after one that does not count.
double timed(const World& world, int turns, const std::function<void()>& call) {
  call();
  tensor::synchronize(world.device());
  world.barrier();
  const int64_t begin = base::monotonic_ns();
  for (int turn = 0; turn < turns; ++turn) call();
  tensor::synchronize(world.device());
  return base::seconds_between(begin, base::monotonic_ns()) / turns;
}

void check_sum(const World& world) {
  at::Tensor tensor = at::full({kSmallCount}, world.rank() + 1.0,
                               at::TensorOptions().device(world.device()));
  world.all_reduce(tensor);
  const double expected = world.size() * (world.size() + 1) / 2.0;
  if (at::equal(tensor.cpu(), at::full({kSmallCount}, expected))) return;
  throw PeerError(fmt::format(
      "the sum of {} ranks arrived wrong on rank {}: have the machine checked",
      world.size(), world.rank()));
}

// Set by tests and by those who want to see what a fault looks like.
bool is_asked_for(std::string_view fault,
                  const base::Environment& environment) {
  return base::find(environment, kStallVariable) == fault;
}

[[noreturn]] void stall() {
  for (;;) pause();
}

struct CopyPlan {
  std::string name;  // "GPU 0 to GPU 1"
  c10::Device source = c10::kCPU;
  c10::Device target = c10::kCPU;
  int64_t count = kCopyCount;
  bool is_spoiled = false;
};

struct CopyResult {
  bool is_equal = false;
  double bytes_per_second = 0;
};

CopyResult try_copy(const CopyPlan& plan) {
  const auto on = [](c10::Device device) {
    return at::TensorOptions().device(device).dtype(at::kInt);
  };
  const at::Tensor data = at::arange(plan.count, on(plan.source));
  at::Tensor copy = at::full({plan.count}, -1, on(plan.target));
  const auto copy_all = [&] {
    copy.copy_(data);
    tensor::synchronize(plan.source);
    tensor::synchronize(plan.target);
  };
  copy_all();
  const int64_t begin = base::monotonic_ns();
  copy_all();
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  if (plan.is_spoiled) copy[plan.count / 2] = -1;
  return {.is_equal = at::equal(copy.cpu(), data.cpu()),
          .bytes_per_second = static_cast<double>(data.nbytes()) / seconds};
}

std::vector<CopyPlan> plan_copies(const CommandContext& context) {
  // In the memory of the machine, where there may be no GPU.
  if (is_asked_for("wrong", context.environment)) {
    return {
        {.name = "GPU 0 to GPU 1", .count = kSmallCount, .is_spoiled = true}};
  }
  tensor::take_device(DeviceChoice::kCuda, 0, context.environment);
  const int count = tensor::num_usable_gpus();
  std::vector<CopyPlan> plans;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to && count > 1) continue;
      const auto gpu = [](int index) {
        return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
      };
      plans.push_back({.name = fmt::format("GPU {} to GPU {}", from, to),
                       .source = gpu(from),
                       .target = gpu(to)});
    }
  }
  return plans;
}

}  // namespace

int probe_exchange(const std::string& device, const CommandContext& context) {
  const World world = World::from_environment(
      {.device = engine::parse_device_choice(device)}, context.environment);
  if (is_asked_for("exchange", context.environment)) stall();
  check_sum(world);
  const auto options = at::TensorOptions().device(world.device());
  at::Tensor small = at::full({kSmallCount}, 1.0, options);
  at::Tensor large = at::full({kLargeCount}, 1.0, options);
  const double small_seconds =
      timed(world, kSmallTurns, [&] { world.all_reduce(small); });
  const double large_seconds =
      timed(world, kLargeTurns, [&] { world.all_reduce(large); });
  if (world.is_main()) {
    context.output.out(fmt::format(
        "doctor result {{\"bytes_per_second\": {}, \"small_seconds\": {}}}\n",
        static_cast<double>(large.nbytes()) / large_seconds, small_seconds));
  }
  return 0;
}

int probe_copies(const CommandContext& context) {
  if (is_asked_for("copies", context.environment)) {
    context.output.out("doctor copy GPU 0 to GPU 1\n");
    stall();
  }
  double slowest = 1e18;
  std::string wrong;
  const std::vector<CopyPlan> plans = plan_copies(context);
  for (const CopyPlan& plan : plans) {
    context.output.out("doctor copy " + plan.name + "\n");
    const CopyResult result = try_copy(plan);
    slowest = std::min(slowest, result.bytes_per_second);
    if (wrong.empty() && !result.is_equal) wrong = plan.name;
  }
  context.output.out(fmt::format(
      "doctor result {{\"copies\": {}, \"slowest\": {}, \"wrong\": \"{}\"}}\n",
      plans.size(), slowest, wrong));
  return 0;
}

}  // namespace lockstep::cli
