#include "lockstep/world.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/clock.h"
#include "lockstep/comm/vote.h"
#include "lockstep/error.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using testing::run_ranks;

TEST(World, ReducesTensorsWithEveryOperation) {
  run_ranks({.size = 4}, [](const World& world) {
    const double mine = world.rank() + 1;
    const std::map<ReduceOp, double> expected = {{ReduceOp::kSum, 10},
                                                 {ReduceOp::kMean, 2.5},
                                                 {ReduceOp::kMin, 1},
                                                 {ReduceOp::kMax, 4}};
    for (const auto& [op, value] : expected) {
      auto tensor = torch::full({1000}, mine);
      world.all_reduce(tensor, op);
      EXPECT_TRUE(torch::equal(tensor, torch::full({1000}, value)));
      EXPECT_EQ(world.reduce(mine, op), value);
    }
    EXPECT_EQ(world.reduce(int64_t{world.rank()}, ReduceOp::kSum), 6);
  });
}

TEST(World, BroadcastsFromAnyRank) {
  run_ranks({.size = 3}, [](const World& world) {
    auto tensor = torch::full({5}, world.rank());
    world.broadcast(tensor, /*from=*/2);
    EXPECT_TRUE(torch::equal(tensor, torch::full({5}, 2)));
    const std::string text = world.rank() == 1 ? "from one" : "";
    EXPECT_EQ(world.broadcast_text(text, 1), "from one");
    EXPECT_EQ(world.broadcast_text("", 0), "");
  });
}

TEST(World, GathersTensorsAndTextsInRankOrder) {
  run_ranks({.size = 3}, [](const World& world) {
    const auto all = world.all_gather(torch::full({2}, world.rank()));
    ASSERT_EQ(all.size(), 3u);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(torch::equal(all[rank], torch::full({2}, rank)));
    }
    const auto texts = world.gather_texts(std::string(world.rank() * 5, 'x'));
    EXPECT_EQ(texts, (std::vector<std::string>{"", "xxxxx", "xxxxxxxxxx"}));
  });
}

TEST(World, AgreesOnFlags) {
  run_ranks({.size = 3}, [](const World& world) {
    EXPECT_TRUE(world.any(world.rank() == 2));
    EXPECT_FALSE(world.any(false));
    EXPECT_TRUE(world.all(true));
    EXPECT_FALSE(world.all(world.rank() != 1));
  });
}

TEST(World, SharesTheResultOfRank0) {
  run_ranks({.size = 3}, [](const World& world) {
    int calls = 0;
    const auto text = world.run_on_rank0_and_broadcast([&] {
      ++calls;
      return std::string("made once");
    });
    EXPECT_EQ(text, "made once");
    EXPECT_EQ(calls, world.is_main() ? 1 : 0);
    EXPECT_EQ(world.run_on_rank0_and_broadcast([] { return 0.1; }), 0.1);
    EXPECT_EQ(world.run_on_rank0_and_broadcast([] { return -7; }), -7);
    EXPECT_EQ(world.run_on_rank0_and_broadcast([] { return 0.5F; }), 0.5F);
    world.run_on_rank0_and_broadcast([&] { ++calls; });
    EXPECT_EQ(calls, world.is_main() ? 2 : 0);
  });
}

TEST(World, ThrowsTheErrorOfRank0OnEveryRank) {
  run_ranks({.size = 3}, [](const World& world) {
    try {
      world.run_on_rank0_and_broadcast([] { throw IoError("disk full"); });
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("disk full"), std::string::npos);
      EXPECT_EQ(dynamic_cast<const IoError*>(&error) != nullptr,
                world.is_main());
    }
    EXPECT_TRUE(world.all(true));  // the world goes on
  });
}

TEST(World, VotesArePostedAtOneStepAndReadAtTheNext) {
  run_ranks({.size = 3}, [](const World& world) {
    auto stop = world.make_vote();
    auto save = world.make_vote();
    EXPECT_EQ(stop.read(), std::nullopt);
    for (int step = 0; step < 50; ++step) {
      const auto answer = stop.read();
      if (step > 0) {
        EXPECT_EQ(answer, step - 1 == 20 ? 1 : 0);
      }
      save.read();
      stop.post(step == 20 && world.rank() == 2);
      save.post(world.rank());
    }
    EXPECT_EQ(save.read(), 2);
    EXPECT_THROW(
        {
          auto twice = world.make_vote();
          twice.post(1);
          twice.post(1);
        },
        ConfigError);
  });
}

TEST(World, AVoteDoesNotWaitForSlowRanks) {
  run_ranks({.size = 2}, [](const World& world) {
    auto vote = world.make_vote();
    world.barrier();
    const int64_t begin = base::monotonic_ns();
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    vote.post(1);
    if (world.rank() == 0) {
      EXPECT_LT(base::seconds_between(begin, base::monotonic_ns()), 0.5);
    }
    EXPECT_EQ(vote.read(), 1);
  });
}

TEST(World, ABarrierNamesTheMissingRanks) {
  run_ranks({.size = 4}, [](const World& world) {
    world.barrier();
    const auto store = world.group()->getStore();
    if (world.rank() == 1 || world.rank() == 3) {
      store->wait({"named_by_0", "named_by_2"}, std::chrono::minutes(2));
      return;
    }
    try {
      world.barrier(std::chrono::seconds(5));
      ADD_FAILURE() << "no error";
    } catch (const TimeoutError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank(s) 1, 3 did not arrive"), std::string::npos)
          << text;
      EXPECT_NE(text.find("--timeout"), std::string::npos);
      EXPECT_NE(text.find("TORCH_DISTRIBUTED_TIMEOUT"), std::string::npos);
      EXPECT_NE(text.find("NCCL_TIMEOUT"), std::string::npos);
    }
    store->set("named_by_" + std::to_string(world.rank()), "1");
  });
}

TEST(World, ABarrierDoesNotTakeALeavingRankForAComingOne) {
  run_ranks({.size = 2}, [](const World& world) {
    if (world.rank() == 1) return;  // The destructor tells the others.
    try {
      world.barrier();
      ADD_FAILURE() << "no error";
    } catch (const PeerError& error) {
      EXPECT_NE(std::string(error.what()).find("rank(s) 1 have left"),
                std::string::npos)
          << error.what();
    }
  });
}

TEST(World, RefusesCollectivesAfterClose) {
  run_ranks({.size = 2}, [](const World& world) {
    world.close();
    auto tensor = torch::ones({1});
    EXPECT_THROW(world.all_reduce(tensor), ConfigError);
    EXPECT_THROW(world.reduce(1, ReduceOp::kSum), ConfigError);
    EXPECT_THROW(world.barrier(), ConfigError);
  });
}

TEST(World, ACaughtErrorDoesNotLookLikeAHang) {
  // The launcher ends ranks that sit in a collective 5 s beyond the limit.
  run_ranks({.size = 2, .launcher_options = {"--timeout=10"}},
            [](const World& world) {
              auto odd = torch::ones({1}, torch::kShort);
              EXPECT_ANY_THROW(world.all_reduce(odd));
              auto tensor = torch::ones({1});
              EXPECT_ANY_THROW(world.broadcast(tensor, 7));
              world.all_reduce(tensor);
              std::this_thread::sleep_for(std::chrono::seconds(21));
              world.all_reduce(tensor);
            });
}

TEST(World, RefusesTheMeanOfIntegers) {
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  auto tensor = torch::ones({1}, torch::kLong);
  EXPECT_THROW(world.all_reduce(tensor, ReduceOp::kMean), ConfigError);
  EXPECT_THROW(world.reduce(1, ReduceOp::kMean), ConfigError);
  EXPECT_THROW(
      World::from_environment({.timeout = std::chrono::milliseconds(-1)}, {}),
      ConfigError);
}

TEST(World, SixteenRanksOnOneNode) {
  run_ranks({.size = 16}, [](const World& world) {
    auto tensor = torch::ones({10});
    world.all_reduce(tensor);
    EXPECT_TRUE(torch::equal(tensor, torch::full({10}, 16.0)));
    world.barrier();
  });
}

TEST(World, EndsWithoutAWord) {
  const std::string output = run_ranks({.size = 3}, [](const World& world) {
    auto tensor = torch::ones({10});
    world.all_reduce(tensor);
  });
  if (std::getenv("RANK") == nullptr) {
    EXPECT_EQ(output.find("arn"), std::string::npos) << output;  // Warn, warn
    EXPECT_EQ(output.find("rror"), std::string::npos) << output;
  }
}

TEST(World, AWorldOfOneNeedsNobody) {
  const World world =
      World::from_environment({.device = DeviceChoice::kCpu}, {});
  auto tensor = torch::ones({3});
  world.all_reduce(tensor);
  world.broadcast(tensor);
  world.barrier();
  EXPECT_TRUE(torch::equal(tensor, torch::ones({3})));
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.gather_texts("me"), std::vector<std::string>{"me"});
  EXPECT_EQ(world.reduce(2.5, ReduceOp::kMean), 2.5);
  EXPECT_TRUE(torch::equal(world.all_gather(tensor)[0], tensor));
  auto vote = world.make_vote();
  vote.post(3);
  EXPECT_EQ(vote.read(), 3);
}

}  // namespace
}  // namespace lockstep
