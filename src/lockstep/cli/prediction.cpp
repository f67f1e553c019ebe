#include "lockstep/cli/prediction.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kSmallBytes = 4;
constexpr int64_t kFirstLargeBytes = int64_t{1} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 28;
// Long enough for the bandwidth to show beside the latency.
constexpr double kLargeSeconds = 0.05;

double largest_of_ranks(double value, const World& world) {
  at::Tensor tensor = at::zeros({1}, at::kDouble).fill_(value);
  tensor = tensor.to(world.device());
  world.all_reduce(tensor, ReduceOp::kMax);
  return tensor.item<double>();
}

// The median of several, of the slowest rank.
comm::MeasuredAllReduce measure_all_reduce(int64_t bytes, int repeats,
                                           const World& world) {
  using Clock = std::chrono::steady_clock;
  at::Tensor tensor = at::zeros({bytes / kSmallBytes},
                                at::device(world.device()).dtype(at::kFloat));
  std::vector<double> seconds;
  for (int i = 0; i < repeats + 1; ++i) {
    world.barrier();
    const auto begin = Clock::now();
    world.all_reduce(tensor);
    // Waits for the device.
    tensor[0].item<float>();
    const std::chrono::duration<double> time = Clock::now() - begin;
    if (i > 0) seconds.push_back(time.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2,
                   seconds.end());
  return {.bytes = static_cast<double>(bytes),
          .seconds = largest_of_ranks(seconds[repeats / 2], world)};
}

comm::Link measure_link(const World& world) {
  constexpr int kSmallRepeats = 21;
  constexpr int kLargeRepeats = 3;
  const auto small = measure_all_reduce(kSmallBytes, kSmallRepeats, world);
  int64_t bytes = kFirstLargeBytes;
  auto large = measure_all_reduce(bytes, kLargeRepeats, world);
  while (large.seconds < kLargeSeconds && bytes < kMostBytes) {
    bytes *= 2;
    large = measure_all_reduce(bytes, kLargeRepeats, world);
  }
  return comm::fit_link(world.size(), small, large);
}

std::vector<double> bucket_bytes(engine::Learner& learner) {
  std::vector<double> sizes;
  for (const at::Tensor& parameter : learner.model().parameters()) {
    if (parameter.requires_grad()) {
      sizes.push_back(static_cast<double>(parameter.nbytes()));
    }
  }
  std::vector<double> buckets;
  for (const auto& indices : learner.bucket_layout()) {
    double& bytes = buckets.emplace_back(0);
    for (const size_t index : indices) bytes += sizes.at(index);
  }
  return buckets;
}

std::string row_text(const comm::ClusterSize& size,
                     const comm::PredictedStep& step) {
  constexpr double kMilliseconds = 1e3;
  return fmt::format("  {:>9} {:>9} {:>9.2f} ms {:>9.2f} ms {:>9.0f}%",
                     fmt::format("{}x{}", size.nodes, size.per_node),
                     size.num_processes(), step.seconds * kMilliseconds,
                     step.exposed_seconds * kMilliseconds,
                     step.efficiency * 100);
}

}  // namespace

std::vector<comm::ClusterSize> sizes_to_predict(const std::string& text,
                                                const World& world) {
  auto sizes = comm::parse_cluster_sizes(text);
  if (world.size() == 1) {
    throw ConfigError(
        "--predict measures the exchange between processes: start at least "
        "two, for example with --nproc 2");
  }
  return sizes;
}

std::string prediction_text(const std::vector<comm::ClusterSize>& sizes,
                            const track::StepTimes& times,
                            engine::Learner& learner, const World& world) {
  const double steps = std::max<double>(1, static_cast<double>(times.steps));
  const auto per_step = [&](double seconds) {
    return largest_of_ranks(seconds / steps, world);
  };
  comm::StepShape shape{
      .backward = per_step(times.backward),
      .rest = per_step(times.data + times.forward + times.optimizer),
      .bucket_bytes = bucket_bytes(learner)};
  const double measured = per_step(times.data + times.forward + times.backward +
                                   times.exchange + times.optimizer);
  const comm::Link link = measure_link(world);
  const comm::PredictedStep here_now =
      comm::predict_step(shape, link, world.size());
  shape.imbalance = std::max(0.0, measured - here_now.seconds);
  double bytes = 0;
  for (const double bucket : shape.bucket_bytes) bytes += bucket;
  const bool is_one_machine = world.local_size() == world.size();
  std::string text = fmt::format(
      "predicted steps: gradients of {} in {} bucket(s), latency {:.1f} us, "
      "bandwidth {:.3f} GB/s between processes; {:.2f} ms of waiting for "
      "slower "
      "processes are added to each\n"
      "      nodes processes          step      waiting efficiency",
      base::bytes_text(static_cast<int64_t>(bytes)), shape.bucket_bytes.size(),
      link.latency_seconds * 1e6, link.bytes_per_second * 1e-9,
      shape.imbalance * 1e3);
  const comm::ClusterSize here{.nodes = world.size() / world.local_size(),
                               .per_node = world.local_size()};
  text +=
      "\n" + row_text(here, here_now) +
      fmt::format("  (here, without them; measured {:.2f} ms)", measured * 1e3);
  bool has_more_nodes = false;
  for (const comm::ClusterSize& size : sizes) {
    text += "\n" + row_text(size, comm::predict_step(shape, link,
                                                     size.num_processes()));
    has_more_nodes = has_more_nodes || size.nodes > 1;
  }
  if (has_more_nodes && is_one_machine) {
    text +=
        "\n  all processes are on one machine: between machines the exchange "
        "takes longer; run on two to measure it";
  }
  return text;
}

}  // namespace lockstep::cli
