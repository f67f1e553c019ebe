// All-reduce through shared memory and over Gloo, by turns in the same
// processes; one JSON line of rank 0.
//
//   lockstep run --nproc N exchange_worker ROUNDS   float32 tensors of 1 KB to
//   100 MB: in buckets (memory of the backend) and copied
//   lockstep run --nproc N exchange_worker update ROUNDS   all-reduce, norm,
//   clipping, AdamW and an average of a model of 100 MB: by every rank, and
//   divided among the ranks (--shard_optimizer)
//   lockstep run --nproc N exchange_worker memory   what a rank needs for such
//   a model, by every rank and divided; memory that ranks share counts in parts
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <sstream>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/comm/gloo_backend.h"
#include "lockstep/comm/place.h"
#include "lockstep/lockstep.h"
#include "lockstep/parallel/sharded_update.h"

namespace {

using lockstep::World;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

struct Times {
  std::vector<double> values;

  double quantile(double share) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<size_t>(share * last)];
  }
};

// What one rank's memory gives while all ranks use theirs: read two arrays,
// write two, as the sum of two ranks does.
double measure_bandwidth(const World& world) {
  constexpr int64_t kCount = int64_t{16} << 20;
  torch::Tensor a = torch::ones({kCount});
  torch::Tensor b = torch::ones({kCount});
  Times rates;
  for (int round = 0; round < 7; ++round) {
    world.all(true);
    const int64_t begin = lockstep::base::monotonic_ns();
    float* x = a.data_ptr<float>();
    float* y = b.data_ptr<float>();
    for (int64_t i = 0; i < kCount; ++i) x[i] = y[i] = x[i] + y[i];
    const double seconds =
        lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
    rates.values.push_back(4.0 * kCount * sizeof(float) / seconds);
  }
  return rates.quantile(0.5);
}

double time_us(const World& world, const BackendPtr& backend,
               torch::Tensor& tensor) {
  std::vector<torch::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.asyncOp = false;
  world.all(true);
  const int64_t begin = lockstep::base::monotonic_ns();
  backend->allreduce(tensors, options)->wait();
  return 1e6 *
         lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
}

struct Row {
  Times gloo;
  Times bucket;
  Times copied;
};

Row measure(const World& world, const BackendPtr& shared,
            const BackendPtr& gloo, int64_t bytes, int rounds) {
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  torch::Tensor plain = torch::zeros({count});
  torch::Tensor bucket = shared->allocateTensor(count, plain.options());
  bucket.zero_();
  Row row;
  for (int round = -3; round < rounds; ++round) {
    const double g = time_us(world, gloo, plain);
    const double b = time_us(world, shared, bucket);
    const double c = time_us(world, shared, plain);
    if (round < 0) continue;
    row.gloo.values.push_back(g);
    row.bucket.values.push_back(b);
    row.copied.values.push_back(c);
  }
  return row;
}

double median_ratio(const Times& a, const Times& b) {
  Times ratios;
  for (size_t i = 0; i < a.values.size(); ++i) {
    ratios.values.push_back(a.values[i] / b.values[i]);
  }
  return ratios.quantile(0.5);
}

void measure_all(int rounds) {
  const auto world =
      World::from_environment({.device = lockstep::DeviceChoice::kCpu});
  const auto shared = world.group()->getBackend(c10::DeviceType::CPU);
  if (shared->getBackendName() != "shared") {
    throw lockstep::ConfigError("the ranks do not share memory; see above");
  }
  const auto gloo = lockstep::comm::make_gloo_backend(
      world.group()->getStore(),
      lockstep::comm::place_from_environment(
          lockstep::base::process_environment()),
      {.name = "compared", .timeout = world.timeout(), .interfaces = "lo"});
  const double bandwidth = measure_bandwidth(world);
  std::string rows;
  for (const int64_t kib : {1, 4, 16, 64, 1024, 25 << 10, 100 << 10}) {
    const int64_t bytes = kib << 10;
    const bool is_small = kib <= 64;
    const Row row =
        measure(world, shared, gloo, bytes, is_small ? 20 * rounds : rounds);
    // A rank reads its part of all tensors and writes it to all.
    const double bucket_seconds = row.bucket.quantile(0.5) * 1e-6;
    rows += fmt::format(
        "{}{{\"kib\": {}, \"gloo_us\": {:.1f}, \"bucket_us\": {:.1f}, "
        "\"copied_us\": {:.1f}, \"bucket_speedup\": {:.2f}, "
        "\"copied_speedup\": {:.2f}, \"copied_p99_us\": {:.1f}, "
        "\"of_bandwidth\": {:.2f}}}",
        rows.empty() ? "" : ", ", kib, row.gloo.quantile(0.5),
        row.bucket.quantile(0.5), row.copied.quantile(0.5),
        median_ratio(row.gloo, row.bucket), median_ratio(row.gloo, row.copied),
        row.copied.quantile(0.99),
        2.0 * static_cast<double>(bytes) / bucket_seconds / bandwidth);
  }
  if (world.is_main()) {
    fmt::print(
        "{{\"ranks\": {}, \"rank_bandwidth_gb\": {:.1f}, \"rows\": [{}]}}\n",
        world.size(), bandwidth * 1e-9, rows);
  }
}

// A model of 100 MB whose gradients lie in four buckets.
struct Model {
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> buckets;
  std::vector<torch::Tensor> gradients;

  explicit Model(const BackendPtr& shared) {
    constexpr int64_t kRows = 2048;
    constexpr int64_t kNumBuckets = 4;
    constexpr int64_t kPerBucket = 3;
    torch::manual_seed(1);
    for (int64_t i = 0; i < kNumBuckets; ++i) {
      torch::Tensor bucket = shared->allocateTensor(
          kPerBucket * kRows * 1024, torch::dtype(torch::kFloat));
      for (const torch::Tensor& part : bucket.chunk(kPerBucket)) {
        gradients.push_back(part.view({kRows, 1024}));
        parameters.push_back(torch::randn({kRows, 1024}).requires_grad_());
      }
      buckets.push_back(std::move(bucket));
    }
  }

  void run_backward() {
    torch::manual_seed(2);
    for (torch::Tensor& bucket : buckets) bucket.uniform_(-1e-3, 1e-3);
  }

  void exchange(const BackendPtr& shared) {
    for (torch::Tensor& bucket : buckets) {
      std::vector<torch::Tensor> tensors = {bucket};
      shared->allreduce(tensors)->wait();
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].mutable_grad() = gradients[i];
    }
  }
};

double seconds_of(const World& world, const std::function<void()>& action) {
  world.all(true);
  const int64_t begin = lockstep::base::monotonic_ns();
  action();
  world.all(true);
  return lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
}

constexpr double kMaxNorm = 1;

// Memory of this process; what is shared counts in equal parts.
double memory_mb() {
  std::istringstream lines(
      lockstep::base::read_file("/proc/self/smaps_rollup"));
  for (std::string line; std::getline(lines, line);) {
    double kib = 0;
    if (std::sscanf(line.c_str(), "Pss: %lf", &kib) == 1) return kib / 1024;
  }
  throw lockstep::IoError("no Pss in /proc/self/smaps_rollup");
}

// One way in a process: what the other has freed would count.
void measure_memory(const std::string& way) {
  torch::set_num_threads(1);
  const auto world =
      World::from_environment({.device = lockstep::DeviceChoice::kCpu});
  const auto shared = world.group()->getBackend(c10::DeviceType::CPU);
  const double before = memory_mb();
  Model model(shared);
  lockstep::AdamW optimizer(model.parameters);
  std::vector<lockstep::Ema> averages;
  averages.emplace_back(model.parameters);
  std::optional<lockstep::parallel::ShardedUpdate> update;
  if (way == "divided") {
    update.emplace(world, optimizer, averages, kMaxNorm);
  }
  model.run_backward();
  model.exchange(shared);
  if (update) {
    update->run({});
  } else {
    optimizer.step_and_clear(
        lockstep::optim::prepare_gradients(model.parameters, {}, kMaxNorm)
            .found_inf);
    averages[0].update();
  }
  world.all(true);
  const double own = memory_mb() - before;
  const double all = world.reduce(own, lockstep::ReduceOp::kSum);
  if (world.is_main()) {
    fmt::print("{{\"ranks\": {}, \"rank_mb\": {:.0f}}}\n", world.size(),
               all / world.size());
  }
}

void measure_update(int rounds) {
  torch::set_num_threads(1);
  const auto world =
      World::from_environment({.device = lockstep::DeviceChoice::kCpu});
  const auto shared = world.group()->getBackend(c10::DeviceType::CPU);
  Model replicated(shared);
  lockstep::AdamW optimizer(replicated.parameters);
  lockstep::Ema average(replicated.parameters);
  Model divided(shared);
  lockstep::AdamW divided_optimizer(divided.parameters);
  std::vector<lockstep::Ema> divided_averages;
  divided_averages.emplace_back(divided.parameters);
  lockstep::parallel::ShardedUpdate update(world, divided_optimizer,
                                           divided_averages, kMaxNorm);
  Times by_every_rank;
  Times by_parts;
  Times ratios;
  for (int round = -2; round < rounds; ++round) {
    replicated.run_backward();
    divided.run_backward();
    const double whole = seconds_of(world, [&] {
      replicated.exchange(shared);
      const auto report = lockstep::optim::prepare_gradients(
          replicated.parameters, {}, kMaxNorm);
      optimizer.step_and_clear(report.found_inf);
      average.update();
    });
    const double part = seconds_of(world, [&] {
      divided.exchange(shared);
      update.run({});
    });
    if (round < 0) continue;
    by_every_rank.values.push_back(1e3 * whole);
    by_parts.values.push_back(1e3 * part);
    ratios.values.push_back(whole / part);
  }
  for (size_t i = 0; i < replicated.parameters.size(); ++i) {
    if (!torch::equal(replicated.parameters[i], divided.parameters[i])) {
      throw lockstep::Error("the updates differ");
    }
  }
  if (world.is_main()) {
    fmt::print(
        "{{\"ranks\": {}, \"replicated_ms\": {:.1f}, \"sharded_ms\": {:.1f}, "
        "\"speedup\": {:.2f}}}\n",
        world.size(), by_every_rank.quantile(0.5), by_parts.quantile(0.5),
        ratios.quantile(0.5));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc == 3 && argv[1] == std::string("memory")) {
      measure_memory(argv[2]);
    } else if (argc == 2) {
      measure_all(std::stoi(argv[1]));
    } else if (argc == 3 && argv[1] == std::string("update")) {
      measure_update(std::stoi(argv[2]));
    } else {
      throw lockstep::ConfigError(
          "usage: exchange_worker [update] ROUNDS | memory whole|divided");
    }
  });
}
