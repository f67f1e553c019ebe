// A model of data-parallel steps: how long a step takes on more processes than
// there are. Plain arithmetic on measured numbers.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::comm {

// One hop between neighbours in a ring of processes.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// A ring all-reduce of `bytes` by n processes: 2(n-1) messages after each
// other, of bytes/n each.
double ring_seconds(const Link& link, int num_processes, double bytes);

// The time of an all-reduce of one size.
struct MeasuredAllReduce {
  double bytes = 0;
  double seconds = 0;
};

// The link that explains both times by ring_seconds().
Link fit_link(int num_processes, const MeasuredAllReduce& small,
              const MeasuredAllReduce& large);

// A step of one process, in seconds, without waiting for others.
struct StepShape {
  double backward = 0;
  double rest = 0;  // Data, forward, optimizer.
  // Waiting for processes that were slower, which a link does not explain.
  double imbalance = 0;
  // In the order in which gradients are ready, which is taken to be even over
  // the backward pass.
  std::vector<double> bucket_bytes = {};
};

// Machines and processes on each.
struct ClusterSize {
  int nodes = 1;
  int per_node = 1;

  int num_processes() const { return nodes * per_node; }
};

// "8x8,64x8": nodes x processes per node. Throws ConfigError.
std::vector<ClusterSize> parse_cluster_sizes(std::string_view text);

struct PredictedStep {
  double seconds = 0;
  double exposed_seconds = 0;  // Waiting that backward does not hide.
  double efficiency = 1;       // 1: the speed grows as the number of processes.
};

// A bucket's exchange begins when its gradients are ready and the previous
// bucket has been exchanged. Every hop takes `link`, which is right if it is
// the slowest one.
PredictedStep predict_step(const StepShape& shape, const Link& link,
                           int num_processes);

}  // namespace lockstep::comm
