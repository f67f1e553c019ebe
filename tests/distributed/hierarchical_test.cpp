// LOCKSTEP_EXCHANGE=hierarchical: shared memory within a machine, Gloo between
// machines. NCCL_HOSTID makes machines of ranks.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>

#include "distributed/exchange_backend.h"
#include "lockstep/comm/machines.h"
#include "lockstep/ddp.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using comm::Machines;
using testing::cpu_backend;
using testing::expect_in;
using testing::refusal;
using testing::run_processes;
using torch::Tensor;

// One letter per rank: its machine.
struct Layout {
  std::string machines;
  int size() const { return static_cast<int>(machines.size()); }
};

// The name of the test.
void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.machines;
}

World connect(const Layout& layout) {
  base::Environment environment = base::process_environment();
  const auto rank = static_cast<size_t>(std::stoi(environment["RANK"]));
  environment["LOCKSTEP_EXCHANGE"] = "hierarchical";
  environment["NCCL_HOSTID"] = layout.machines[rank];
  return World::from_environment({.device = DeviceChoice::kCpu}, environment);
}

std::string run_layout(const Layout& layout,
                       const std::function<void(const World&)>& body,
                       int exit_code = 0) {
  return run_processes({.size = layout.size(), .expected_exit_code = exit_code},
                       [&] { body(connect(layout)); });
}

Tensor values_of(int rank, int64_t count) {
  auto generator = at::detail::createCPUGenerator(1000 + rank);
  return torch::randn({count}, generator);
}

// The documented order of a ring: with n tensors, chunk c is
// (((x[c-1] + x[c-2]) + x[c-3]) + ...) + x[c], numbers modulo n. Written here
// once more, so that a change of the order fails.
Tensor ring_sum(const std::vector<Tensor>& tensors) {
  const auto divide_up = [](int64_t value, int64_t by) {
    return (value + by - 1) / by;
  };
  constexpr int64_t kSegmentBytes = 1 << 20;
  const auto size = static_cast<int64_t>(tensors.size());
  const int64_t count = tensors[0].numel();
  const auto width = static_cast<int64_t>(tensors[0].element_size());
  const int64_t bytes = count * width;
  const int64_t segments =
      divide_up(std::max(divide_up(bytes, kSegmentBytes), 2 * size), size) *
      size;
  const int64_t chunk =
      segments / size * divide_up(divide_up(bytes, segments), width);
  Tensor result = tensors[0].clone();
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t number = begin / chunk;
    const auto part = [&](int64_t turn) {
      return tensors[(number + 2 * size - turn) % size].slice(0, begin,
                                                              begin + chunk);
    };
    Tensor sum = part(1);
    for (int64_t turn = 2; turn <= size; ++turn) sum = part(turn) + sum;
    result.slice(0, begin, begin + chunk).copy_(sum);
  }
  return result;
}

// Sums of each machine's ranks first, then those of the machines.
Tensor expected_sum(const Layout& layout, int64_t count) {
  std::vector<std::string> names;
  for (const char name : layout.machines) names.emplace_back(1, name);
  const Machines machines(names);
  std::vector<Tensor> sums;
  for (int machine = 0; machine < machines.count(); ++machine) {
    std::vector<Tensor> values;
    for (const int rank : machines.ranks_of(machine)) {
      values.push_back(values_of(rank, count));
    }
    sums.push_back(ring_sum(values));
  }
  return ring_sum(sums);
}

class Hierarchical : public ::testing::TestWithParam<Layout> {};

TEST_P(Hierarchical, AllRanksGetTheBitsOfTheDocumentedOrder) {
  const Layout& layout = GetParam();
  run_layout(layout, [&](const World& world) {
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "hierarchical");
    for (const int64_t count : {1, 3, 1000, 1'000'007}) {
      for (const bool is_bucket : {false, true}) {
        const Tensor own = values_of(world.rank(), count);
        Tensor tensor =
            is_bucket ? cpu_backend(world)->allocateTensor(count, own.options())
                      : torch::empty_like(own);
        tensor.copy_(own);
        world.all_reduce(tensor);
        EXPECT_TRUE(torch::equal(tensor, expected_sum(layout, count)));
        for (const Tensor& other : world.all_gather(tensor)) {
          EXPECT_TRUE(torch::equal(other, tensor));
        }
      }
    }
    Tensor number = torch::full({}, world.rank() + 2, at::kLong);
    world.all_reduce(number, ReduceOp::kMax);
    EXPECT_EQ(number.item<int64_t>(), world.size() + 1);
    // Not contiguous.
    Tensor wide = torch::ones({4, 6}).t();
    world.all_reduce(wide);
    EXPECT_TRUE(torch::equal(wide, torch::full({6, 4}, float(world.size()))));
  });
}

TEST_P(Hierarchical, BroadcastsAndBarriersReachAllRanks) {
  run_layout(GetParam(), [](const World& world) {
    for (int root = 0; root < world.size(); ++root) {
      Tensor tensor = values_of(world.rank(), 70'000);
      world.broadcast(tensor, root);
      EXPECT_TRUE(torch::equal(tensor, values_of(root, 70'000)));
    }
    for (int round = 0; round < 20; ++round) {
      world.group()->barrier()->wait();
    }
    EXPECT_TRUE(world.all(true));
  });
}

TEST_P(Hierarchical, DdpAveragesOverIt) {
  run_layout(GetParam(), [](const World& world) {
    torch::manual_seed(1);
    auto model = std::make_shared<torch::nn::LinearImpl>(300, 200);
    DistributedDataParallel<torch::nn::LinearImpl> ddp(model, world);
    for (int step = 0; step < 4; ++step) {
      model->zero_grad();
      const Tensor input = torch::full({2, 300}, float(world.rank() + step));
      ddp(input).sum().backward();
      const float mean = 0.5F * float(world.size() - 1) + float(step);
      EXPECT_LT((model->weight.grad() - 2 * mean).abs().max().item<double>(),
                1e-4);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, Hierarchical,
                         ::testing::Values(Layout{"aabb"}, Layout{"abab"},
                                           Layout{"aab"}, Layout{"abc"},
                                           Layout{"aaabbc"}));

TEST(HierarchicalWorlds, OneMachineIsSharedMemory) {
  run_layout({"aaa"}, [](const World& world) {
    EXPECT_EQ(cpu_backend(world)->getBackendName(), "shared");
  });
}

TEST(HierarchicalWorlds, AllRanksMustWantIt) {
  const std::string output =
      run_processes({.size = 3, .expected_exit_code = 2}, [] {
        if (base::process_environment()["RANK"] == "1") {
          World::from_environment({.device = DeviceChoice::kCpu});
        } else {
          connect({"aaa"});
        }
      });
  if (std::getenv("RANK") != nullptr) return;
  expect_in(output,
            "LOCKSTEP_EXCHANGE=hierarchical is set for rank(s) 0, 2 and not "
            "for rank(s) 1");
}

// A rank that is gone is an error on its own machine and beyond. It ends with
// 0, so that the launcher does not end the others before they see it.
TEST(HierarchicalWorlds, ARankThatIsGoneIsAnErrorOnEveryMachine) {
  for (const int gone : {1, 2}) {
    SCOPED_TRACE(gone);
    run_processes({.size = 4}, [&] {
      const World world = connect({"aabb"});
      Tensor tensor = torch::ones({1 << 20});
      world.all_reduce(tensor);
      if (world.rank() == gone) std::_Exit(0);
      const std::string error =
          refusal<PeerError>([&] { world.all_reduce(tensor); });
      const bool is_on_its_machine = gone / 2 == world.rank() / 2;
      expect_in(error, is_on_its_machine
                           ? "rank " + std::to_string(gone) +
                                 " ended or crashed; look for its first error"
                           : "between machines, on rank ");
    });
  }
}

TEST(MachinesOfRanks, AreNumberedByTheirLowestRanks) {
  const Machines machines({"b", "a", "b", "c", "a"});
  EXPECT_EQ(machines.count(), 3);
  EXPECT_EQ(machines.ranks_of(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(machines.ranks_of(1), (std::vector<int>{1, 4}));
  EXPECT_EQ(machines.machine_of(3), 2);
  EXPECT_EQ(machines.local_rank(4), 1);
  EXPECT_TRUE(machines.is_leader(1));
  EXPECT_FALSE(machines.is_leader(2));
  EXPECT_EQ(comm::machine_name({}), comm::machine_name({}));
  EXPECT_EQ(comm::machine_name({{"NCCL_HOSTID", "x"}}), "x");
}

}  // namespace
}  // namespace lockstep
