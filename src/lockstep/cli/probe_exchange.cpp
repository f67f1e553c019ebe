#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

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

// Set by tests and by those who want to see what a hang looks like.
void stall_if_asked(const base::Environment& environment,
                    std::string_view what) {
  if (base::find(environment, kStallVariable) != what) return;
  for (;;) pause();
}

}  // namespace

int probe_exchange(const std::string& device, const CommandContext& context) {
  const World world = World::from_environment(
      {.device = engine::parse_device_choice(device)}, context.environment);
  stall_if_asked(context.environment, "exchange");
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
  if (base::find(context.environment, kStallVariable) == "copies") {
    context.output.out("doctor copy GPU 0 to GPU 1\n");
    stall_if_asked(context.environment, "copies");
  }
  tensor::take_device(DeviceChoice::kCuda, 0, context.environment);
  const int count = tensor::num_usable_gpus();
  double slowest = 1e18;
  int copies = 0;
  std::string wrong;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to && count > 1) continue;
      const std::string pair = fmt::format("GPU {} to GPU {}", from, to);
      context.output.out("doctor copy " + pair + "\n");
      const c10::Device source(c10::kCUDA, static_cast<c10::DeviceIndex>(from));
      const c10::Device target(c10::kCUDA, static_cast<c10::DeviceIndex>(to));
      const at::Tensor data = at::arange(
          kCopyCount, at::TensorOptions().device(source).dtype(at::kInt));
      at::Tensor copy = at::full(
          {kCopyCount}, -1, at::TensorOptions().device(target).dtype(at::kInt));
      copy.copy_(data);
      tensor::synchronize(source);
      tensor::synchronize(target);
      const int64_t begin = base::monotonic_ns();
      copy.copy_(data);
      tensor::synchronize(source);
      tensor::synchronize(target);
      const double seconds = base::seconds_between(begin, base::monotonic_ns());
      slowest = std::min(slowest, static_cast<double>(data.nbytes()) / seconds);
      ++copies;
      if (wrong.empty() && !at::equal(copy.cpu(), data.cpu())) wrong = pair;
    }
  }
  context.output.out(fmt::format(
      "doctor result {{\"copies\": {}, \"slowest\": {}, \"wrong\": \"{}\"}}\n",
      copies, slowest, wrong));
  return 0;
}

}  // namespace lockstep::cli
