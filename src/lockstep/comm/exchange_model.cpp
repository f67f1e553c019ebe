#include "lockstep/comm/exchange_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

constexpr int64_t kMostProcesses = 1'000'000;

int cluster_number(std::string_view digits, std::string_view text) {
  const auto number = base::parse_integer(digits);
  if (number && *number >= 1 && *number <= kMostProcesses) {
    return static_cast<int>(*number);
  }
  throw ConfigError(
      fmt::format("--predict '{}' must be nodes x processes per node, such as "
                  "8x8,64x8, of at most {} processes",
                  text, kMostProcesses));
}

}  // namespace

double ring_seconds(const Link& link, int num_processes, double bytes) {
  const double hops = 2.0 * (num_processes - 1);
  return hops *
         (link.latency_seconds + bytes / num_processes / link.bytes_per_second);
}

Link fit_link(int num_processes, const MeasuredAllReduce& small,
              const MeasuredAllReduce& large) {
  const double hops = 2.0 * (num_processes - 1);
  // Noise can make the larger one the faster one.
  const double difference = std::max(large.seconds - small.seconds,
                                     std::numeric_limits<double>::min());
  const double seconds_per_byte =
      difference / (large.bytes - small.bytes) * num_processes / hops;
  return {.latency_seconds =
              std::max(0.0, small.seconds / hops -
                                small.bytes / num_processes * seconds_per_byte),
          .bytes_per_second = 1 / seconds_per_byte};
}

std::vector<ClusterSize> parse_cluster_sizes(std::string_view text) {
  std::vector<ClusterSize> sizes;
  for (const std::string& part : base::split(text, ',')) {
    const size_t cross = part.find('x');
    const ClusterSize size{
        .nodes = cluster_number(part.substr(0, cross), text),
        .per_node = cross == std::string::npos
                        ? 0
                        : cluster_number(part.substr(cross + 1), text)};
    // Also when there is no 'x'.
    cluster_number(std::to_string(int64_t{size.nodes} * size.per_node), text);
    sizes.push_back(size);
  }
  return sizes;
}

PredictedStep predict_step(const StepShape& shape, const Link& link,
                           int num_processes) {
  const double alone = shape.rest + shape.backward;
  PredictedStep step{.seconds = alone};
  if (num_processes == 1) return step;
  const double total = std::accumulate(shape.bucket_bytes.begin(),
                                       shape.bucket_bytes.end(), 0.0);
  double ready_bytes = 0;
  double exchanged = 0;  // Since the start of the backward pass.
  for (const double bytes : shape.bucket_bytes) {
    ready_bytes += bytes;
    const double ready = shape.backward * ready_bytes / total;
    exchanged =
        std::max(ready, exchanged) + ring_seconds(link, num_processes, bytes);
  }
  step.exposed_seconds =
      std::max(0.0, exchanged - shape.backward) + shape.imbalance;
  step.seconds = alone + step.exposed_seconds;
  step.efficiency = step.seconds > 0 ? alone / step.seconds : 1;
  return step;
}

}  // namespace lockstep::comm
