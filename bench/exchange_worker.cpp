// All-reduce through shared memory and over Gloo, by turns in the same
// processes; one JSON line of rank 0.
//
//   lockstep run --nproc N exchange_worker ROUNDS   float32 tensors of 1 KB to
//   100 MB: in buckets (memory of the backend) and copied
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/comm/gloo_backend.h"
#include "lockstep/comm/place.h"
#include "lockstep/lockstep.h"

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

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc != 2) {
      throw lockstep::ConfigError("usage: exchange_worker ROUNDS");
    }
    measure_all(std::stoi(argv[1]));
  });
}
