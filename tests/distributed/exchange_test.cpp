// Tensors through shared memory: the bits of Gloo, and what happens when ranks
// disagree, end or stall.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "lockstep/comm/gloo_backend.h"
#include "lockstep/comm/place.h"
#include "lockstep/error.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::run_ranks;
using torch::Tensor;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

BackendPtr cpu_backend(const World& world) {
  return world.group()->getBackend(c10::DeviceType::CPU);
}

// A Gloo group of the same ranks, to compare with.
BackendPtr make_gloo(const World& world) {
  return comm::make_gloo_backend(
      world.group()->getStore(),
      comm::place_from_environment(base::process_environment()),
      {.name = "compared", .timeout = world.timeout(), .interfaces = "lo"});
}

const std::vector<at::ScalarType> kTypes = {
    at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kChar,
    at::kByte,   at::kInt,   at::kLong, at::kBool};
const std::vector<c10d::ReduceOp::RedOpType> kOperations = {
    c10d::ReduceOp::SUM, c10d::ReduceOp::PRODUCT, c10d::ReduceOp::MIN,
    c10d::ReduceOp::MAX};

Tensor values_of(int rank, int64_t count, at::ScalarType type) {
  auto generator = at::detail::createCPUGenerator(1000 + rank);
  if (c10::isFloatingType(type)) {
    return torch::randn({count}, generator, at::kDouble).to(type);
  }
  const int64_t high = type == at::kBool ? 2 : 100;
  return torch::randint(0, high, {count}, generator, at::kLong).to(type);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

class Exchange : public ::testing::TestWithParam<int> {};

TEST_P(Exchange, AllReduceHasTheBitsOfGloo) {
  run_ranks({.size = GetParam()}, [](const World& world) {
    const BackendPtr shared = cpu_backend(world);
    ASSERT_EQ(shared->getBackendName(), "shared");
    const BackendPtr gloo = make_gloo(world);
    for (const int64_t count : {1, 3, 1000, 1000007}) {
      for (const at::ScalarType type : kTypes) {
        for (const auto operation : kOperations) {
          const Tensor values = values_of(world.rank(), count, type);
          c10d::AllreduceOptions options;
          options.reduceOp = operation;
          std::vector<Tensor> ours = {values.clone()};
          std::vector<Tensor> theirs = {values.clone()};
          // Born in shared memory: the way of DDP's buckets.
          std::vector<Tensor> bucket = {
              shared->allocateTensor(count, values.options())};
          bucket[0].copy_(values);
          shared->allreduce(ours, options)->wait();
          gloo->allreduce(theirs, options)->wait();
          shared->allreduce(bucket, options)->wait();
          EXPECT_TRUE(same_bits(ours[0], theirs[0]))
              << count << " " << type << " " << int(operation);
          EXPECT_TRUE(same_bits(bucket[0], theirs[0]))
              << count << " " << type << " " << int(operation)
              << " in the arena";
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Exchange, ::testing::Values(2, 3, 4, 8));

}  // namespace
}  // namespace lockstep
