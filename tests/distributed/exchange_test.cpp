// Tensors through shared memory: the bits of Gloo, and what happens when ranks
// disagree, end or stall.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <cstring>
#include <future>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "distributed/exchange_backend.h"
#include "lockstep/comm/gloo_backend.h"
#include "lockstep/comm/place.h"
#include "lockstep/comm/shared_arena.h"
#include "lockstep/ddp.h"
#include "lockstep/error.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::BackendPtr;
using testing::cpu_backend;
using testing::is_shared_memory;
using testing::run_processes;
using testing::run_ranks;
using torch::Tensor;

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

TEST_P(Exchange, OtherCollectivesHaveTheBitsOfGloo) {
  run_ranks({.size = GetParam()}, [](const World& world) {
    const BackendPtr shared = cpu_backend(world);
    const BackendPtr gloo = make_gloo(world);
    const int64_t size = world.size();
    for (const int64_t count : {1, 3, 1000, 1000007}) {
      for (const at::ScalarType type : kTypes) {
        SCOPED_TRACE(std::to_string(count) + " " + c10::toString(type));
        const Tensor values = values_of(world.rank(), count, type);
        c10d::BroadcastOptions from;
        from.rootRank = size - 1;
        std::vector<Tensor> ours = {values.clone()};
        std::vector<Tensor> theirs = {values.clone()};
        shared->broadcast(ours, from)->wait();
        gloo->broadcast(theirs, from)->wait();
        EXPECT_TRUE(same_bits(ours[0], theirs[0]));

        std::vector<Tensor> inputs = {values};
        std::vector<std::vector<Tensor>> all(2);
        for (auto& outputs : all) {
          for (int64_t rank = 0; rank < size; ++rank) {
            outputs.push_back(torch::empty_like(values));
          }
        }
        std::vector<std::vector<Tensor>> our_outputs = {all[0]};
        std::vector<std::vector<Tensor>> their_outputs = {all[1]};
        shared->allgather(our_outputs, inputs)->wait();
        gloo->allgather(their_outputs, inputs)->wait();
        for (int64_t rank = 0; rank < size; ++rank) {
          EXPECT_TRUE(same_bits(all[0][rank], all[1][rank]));
        }

        Tensor joined = torch::empty({size * count}, values.options());
        Tensor part = values.clone();
        shared->_allgather_base(joined, part)->wait();
        EXPECT_TRUE(same_bits(joined, torch::cat(all[1])));

        Tensor own = torch::empty_like(values);
        Tensor scattered = torch::empty_like(values);
        Tensor whole = values_of(world.rank(), size * count, type);
        shared->_reduce_scatter_base(own, whole)->wait();
        gloo->_reduce_scatter_base(scattered, whole)->wait();
        EXPECT_TRUE(same_bits(own, scattered));
      }
    }
    shared->barrier()->wait();
  });
}

// Each rank sums its bytes, and leaves the others as they were.
TEST_P(Exchange, ASplitSumGivesEachRankItsPart) {
  run_ranks({.size = GetParam()}, [](const World& world) {
    const BackendPtr shared = cpu_backend(world);
    comm::SharedArena& arena = *world.shared_arena();
    const auto rank = static_cast<size_t>(world.rank());
    constexpr int64_t kCount = 1000007;
    const Tensor values = values_of(world.rank(), kCount, at::kFloat);
    Tensor whole = values.clone();
    world.all_reduce(whole);
    // Uneven, and the last rank has nothing.
    comm::ReduceEdges edges;
    for (int64_t i = 0; i < world.size(); ++i) {
      edges.push_back(4 * (i * kCount / world.size() / (i + 1)));
    }
    std::sort(edges.begin(), edges.end());
    edges.push_back(4 * kCount);
    edges[world.size() - 1] = 4 * kCount;
    const auto sum = [&](Tensor& bucket) {
      bucket.copy_(values);
      std::vector<Tensor> tensors = {bucket};
      shared->allreduce(tensors)->wait();
    };

    Tensor bucket = shared->allocateTensor(kCount, values.options());
    const size_t offset = *arena.block_of(bucket.data_ptr(), bucket.nbytes());
    arena.splits().set(offset, edges);
    sum(bucket);
    Tensor expected = values.clone();
    const auto begin = static_cast<int64_t>(edges[rank] / 4);
    const auto end = static_cast<int64_t>(edges[rank + 1] / 4);
    expected.slice(0, begin, end).copy_(whole.slice(0, begin, end));
    EXPECT_TRUE(same_bits(bucket, expected));

    // Where ranks differ, everything is summed.
    if (rank == 1) arena.splits().erase(offset);
    sum(bucket);
    EXPECT_TRUE(same_bits(bucket, whole));
    arena.splits().set(offset, edges);

    // A new tensor in the same memory is not split.
    bucket.reset();
    bucket = shared->allocateTensor(kCount, values.options());
    EXPECT_EQ(arena.block_of(bucket.data_ptr(), bucket.nbytes()), offset);
    sum(bucket);
    EXPECT_TRUE(same_bits(bucket, whole));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Exchange, ::testing::Values(2, 3, 4, 8));

TEST(ExchangeOfWorlds, NanAndZerosComeOutAsWithGloo) {
  run_ranks({.size = 3}, [](const World& world) {
    const BackendPtr shared = cpu_backend(world);
    const BackendPtr gloo = make_gloo(world);
    const std::vector<double> special = {0.0,      -0.0,      NAN,
                                         INFINITY, -INFINITY, 1};
    // All triples of special values.
    std::vector<double> values;
    for (int code = 0; code < 216; ++code) {
      const int digits[] = {code % 6, code / 6 % 6, code / 36};
      values.push_back(special[digits[world.rank()]]);
    }
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      for (const auto operation : kOperations) {
        c10d::AllreduceOptions options;
        options.reduceOp = operation;
        std::vector<Tensor> ours = {torch::tensor(values, type)};
        std::vector<Tensor> theirs = {ours[0].clone()};
        shared->allreduce(ours, options)->wait();
        gloo->allreduce(theirs, options)->wait();
        const Tensor a = ours[0].to(at::kDouble);
        const Tensor b = theirs[0].to(at::kDouble);
        EXPECT_TRUE(torch::equal(a.isnan(), b.isnan())) << int(operation);
        EXPECT_TRUE(torch::equal(a.signbit().logical_and(~a.isnan()),
                                 b.signbit().logical_and(~b.isnan())))
            << type << int(operation);
        EXPECT_TRUE(torch::equal(a.nan_to_num(0.5), b.nan_to_num(0.5)));
      }
    }
  });
}

TEST(ExchangeOfWorlds, StridedTensorsAndEmptyOnesAreReduced) {
  run_ranks({.size = 2}, [](const World& world) {
    Tensor wide = torch::full({4, 6}, world.rank() + 1.0);
    Tensor columns =
        wide.index({torch::indexing::Slice(), torch::indexing::Slice(0, 3)});
    ASSERT_FALSE(columns.is_non_overlapping_and_dense());
    world.all_reduce(columns);
    world.broadcast(columns);
    EXPECT_TRUE(torch::equal(columns, torch::full({4, 3}, 3.0)));
    EXPECT_EQ(wide[0][5].item<double>(), world.rank() + 1.0);
    Tensor turned = torch::full({3, 5}, world.rank() + 1.0).t();
    world.all_reduce(turned);
    EXPECT_TRUE(torch::equal(turned, torch::full({5, 3}, 3.0)));
    const auto all = world.all_gather(columns);
    EXPECT_TRUE(torch::equal(all[1], columns));
    Tensor none = torch::empty({0});
    world.all_reduce(none);
  });
}

TEST(ExchangeOfWorlds, RareOperationsAreLeftToGloo) {
  run_ranks({.size = 2}, [](const World& world) {
    const BackendPtr shared = cpu_backend(world);
    std::vector<Tensor> bits = {torch::full({3}, 1 << world.rank(), at::kLong)};
    c10d::AllreduceOptions either;
    either.reduceOp = c10d::ReduceOp::BOR;
    shared->allreduce(bits, either)->wait();
    EXPECT_TRUE(torch::equal(bits[0], torch::full({3}, 3, at::kLong)));
    std::vector<Tensor> sent = {torch::full({3}, 7.0)};
    if (world.rank() == 0) {
      shared->send(sent, 1, 0)->wait();
    } else {
      sent[0].zero_();
      shared->recv(sent, 0, 0)->wait();
    }
    EXPECT_TRUE(torch::equal(sent[0], torch::full({3}, 7.0)));
    const Tensor place = torch::tensor({{int64_t{world.rank()}}});
    std::vector<Tensor> sparse = {
        torch::sparse_coo_tensor(place, torch::ones({1}), {4})};
    auto work = shared->allreduce(sparse, c10d::AllreduceOptions());
    work->wait();
    EXPECT_EQ(work->result()[0].to_dense().sum().item<float>(), 2);
  });
}

TEST(ExchangeOfWorlds, ManyCallsInFlightCompleteInOrder) {
  run_ranks({.size = 3}, [](const World& world) {
    std::vector<Tensor> tensors;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    std::atomic<int> num_called = 0;
    for (int i = 0; i < 60; ++i) {
      tensors.push_back(torch::full({i % 3 == 0 ? 300000 : 10}, double(i)));
      std::vector<Tensor> one = {tensors.back()};
      works.push_back(world.group()->allreduce(one));
      works.back()->getFuture()->addCallback([&](auto&) { ++num_called; });
    }
    auto between = torch::ones({1});
    world.all_reduce(between);  // Runs on this thread, after all others.
    EXPECT_EQ(num_called, 60);
    for (int i = 59; i >= 0; --i) {
      works[i]->wait();
      EXPECT_TRUE(works[i]->isCompleted());
      EXPECT_EQ(tensors[i][0].item<double>(), 3.0 * i);
    }
  });
}

// A callback runs on the thread of the exchange, or on one that waits for it:
// neither may wait for itself.
TEST(ExchangeOfWorlds, ACallbackMayCallCollectives) {
  run_ranks({.size = 3}, [](const World& world) {
    for (const int64_t count : {10, 300000}) {
      for (const bool waits : {false, true}) {
        Tensor first = torch::ones({count});
        Tensor second = torch::ones({count});
        std::vector<Tensor> one = {first};
        auto work = world.group()->allreduce(one);
        std::promise<double> result;
        work->getFuture()->addCallback([&](auto&) {
          world.all_reduce(second);  // Runs in the callback.
          std::vector<Tensor> sum = {first + second};
          auto nested = world.group()->allreduce(sum);
          nested->wait();
          result.set_value(sum[0][0].item<double>());
        });
        if (waits) work->wait();
        EXPECT_EQ(result.get_future().get(), 18);
      }
    }
  });
}

TEST(ExchangeOfWorlds, AMismatchIsTheSameErrorOnEveryRank) {
  run_ranks({.size = 3}, [](const World& world) {
    auto tensor = torch::ones({world.rank() == 1 ? 5 : 4});
    try {
      world.all_reduce(tensor);
      ADD_FAILURE() << "no error";
    } catch (const PeerError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("all_reduce #"), std::string::npos) << text;
      EXPECT_NE(text.find(" on rank " + std::to_string(world.rank()) +
                          " of 3: rank 1 called all_reduce(sum) of 20 B "
                          "float32 while rank 0 called all_reduce(sum) of 16 B "
                          "float32"),
                std::string::npos)
          << text;
    }
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  });
}

TEST(ExchangeOfWorlds, GradientsAreBornInSharedMemory) {
  run_ranks({.size = 2}, [](const World& world) {
    auto net = std::make_shared<torch::nn::LinearImpl>(300, 300);
    DistributedDataParallel<torch::nn::LinearImpl> ddp(
        net, world, {.gradient_as_bucket_view = true});
    for (int step = 0; step < 3; ++step) {
      ddp(torch::ones({4, 300})).sum().backward();
      EXPECT_TRUE(is_shared_memory(net->weight.grad().const_data_ptr()))
          << "step " << step;
      net->zero_grad();
    }
  });
}

TEST(ExchangeOfWorlds, TheVariableChooses) {
  for (const std::string choice : {"gloo", "shared"}) {
    run_ranks({.size = 2, .environment = {{"LOCKSTEP_EXCHANGE", choice}}},
              [](const World& world) {
                EXPECT_EQ(cpu_backend(world)->getBackendName(),
                          std::getenv("LOCKSTEP_EXCHANGE"));
                EXPECT_EQ(world.reduce(1, ReduceOp::kSum), 2);
              });
  }
  const std::string output =
      run_ranks({.size = 2,
                 .expected_exit_code = 2,
                 .environment = {{"LOCKSTEP_EXCHANGE", "fast"}}},
                [](const World&) { ADD_FAILURE() << "no error"; });
  EXPECT_NE(output.find("LOCKSTEP_EXCHANGE='fast': it must be gloo, shared or "
                        "hierarchical"),
            std::string::npos)
      << output;
}

TEST(ExchangeOfWorlds, ADemandThatAnotherRankRefusesIsAnError) {
  const std::string output =
      run_processes({.size = 2, .expected_exit_code = 2}, [] {
        base::Environment environment = base::process_environment();
        environment["LOCKSTEP_EXCHANGE"] =
            environment["RANK"] == "0" ? "gloo" : "shared";
        World::from_environment({.device = DeviceChoice::kCpu}, environment);
      });
  EXPECT_NE(output.find("LOCKSTEP_EXCHANGE=shared, but the ranks cannot share "
                        "memory: rank 0 has LOCKSTEP_EXCHANGE=gloo"),
            std::string::npos)
      << output;
}

TEST(ExchangeOfWorlds, AWishOfOneRankIsFollowedByAllWithoutAWord) {
  const std::string output = run_processes({.size = 2}, [] {
    base::Environment environment = base::process_environment();
    if (environment["RANK"] == "1") environment["LOCKSTEP_EXCHANGE"] = "gloo";
    const World world =
        World::from_environment({.device = DeviceChoice::kCpu}, environment);
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "gloo");
  });
  if (std::getenv("RANK") != nullptr) return;
  EXPECT_EQ(output.find("Gloo"), std::string::npos) << output;
}

}  // namespace
}  // namespace lockstep
