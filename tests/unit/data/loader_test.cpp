#include "lockstep/loader.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "lockstep/error.h"

namespace lockstep {
namespace {

// Sample i is (i, a number drawn from its seed); later samples load faster than
// earlier ones.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t broken = -1)
      : size_(size), broken_(broken) {}

  int64_t size() const override { return size_; }

  Sample get(int64_t index, uint64_t seed) const override {
    ++loaded;
    std::this_thread::sleep_for(std::chrono::microseconds(50 * (index % 7)));
    if (index == broken_) throw FormatError("not an image");
    auto generator = at::detail::createCPUGenerator(seed);
    return {torch::tensor(index), torch::rand({2}, generator)};
  }

  mutable std::atomic<int64_t> loaded{0};

 private:
  int64_t size_;
  int64_t broken_;
};

std::vector<Batch> read(Batches epoch) {
  std::vector<Batch> batches;
  while (auto batch = epoch.next()) batches.push_back(*std::move(batch));
  return batches;
}

TEST(Loader, GivesTheSamplersOrderForAnyNumberOfThreads) {
  const auto data = std::make_shared<Numbers>(103);
  std::vector<Batch> expected;
  for (const int workers : {0, 1, 2, 8}) {
    const Loader loader(data, {1, 2}, at::kCPU,
                        {.batch_size = 8, .workers = workers, .seed = 3});
    const auto batches = read(loader.epoch(2));
    ASSERT_EQ(static_cast<int64_t>(batches.size()), loader.batches_per_epoch());
    std::vector<int64_t> order;
    for (const Batch& batch : batches) {
      order.insert(order.end(), batch.indices.begin(), batch.indices.end());
      EXPECT_TRUE(torch::equal(batch[0], torch::tensor(batch.indices)));
    }
    EXPECT_EQ(order, loader.sampler().indices(2));
    if (expected.empty()) expected = batches;
    for (size_t i = 0; i < batches.size(); ++i) {
      EXPECT_TRUE(torch::equal(batches[i][1], expected[i][1]))
          << "random draws depend on threads";
    }
  }
}

TEST(Loader, SeedsDependOnTheSampleNotOnTheRank) {
  const auto data = std::make_shared<Numbers>(40);
  std::map<int64_t, float> drawn;
  for (const int size : {1, 4}) {
    for (int rank = 0; rank < size; ++rank) {
      const Loader loader(data, {rank, size}, at::kCPU, {.batch_size = 5});
      for (const Batch& batch : read(loader.epoch(1))) {
        for (int64_t i = 0; i < batch.size(); ++i) {
          const auto value = batch[1][i][0].item<float>();
          const auto [known, is_new] = drawn.emplace(batch.indices[i], value);
          EXPECT_EQ(known->second, value);
        }
      }
    }
  }
  EXPECT_EQ(drawn.size(), 40u);
}

TEST(Loader, ResumesAtTheVeryNextBatch) {
  const auto data = std::make_shared<Numbers>(50);
  const Loader loader(data, {0, 1}, at::kCPU, {.batch_size = 7, .seed = 1});
  const auto whole = read(loader.epoch(4));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const auto rest = read(loader.resume(whole[cut].next));
    ASSERT_EQ(rest.size(), whole.size() - cut - 1);
    if (rest.empty()) continue;
    EXPECT_EQ(rest[0].indices, whole[cut + 1].indices);
    EXPECT_TRUE(torch::equal(rest[0][1], whole[cut + 1][1]));
  }
}

TEST(Loader, HandlesALastBatchThatIsNotFull) {
  const auto data = std::make_shared<Numbers>(10);
  const Loader all(data, {0, 1}, at::kCPU, {.batch_size = 4});
  EXPECT_EQ(read(all.epoch(0)).back().size(), 2);
  const Loader full(data, {0, 1}, at::kCPU,
                    {.batch_size = 4, .drop_last_batch = true});
  EXPECT_EQ(full.batches_per_epoch(), 2);
  EXPECT_EQ(read(full.epoch(0)).size(), 2u);
  EXPECT_EQ(read(full.resume({.sample = 4})).size(), 1u);
}

TEST(Loader, AnErrorReachesTheCallerWithTheSamplesIndex) {
  const auto data = std::make_shared<Numbers>(20, /*broken=*/13);
  for (const int workers : {0, 3}) {
    const Loader loader(
        data, {0, 1}, at::kCPU,
        {.batch_size = 5, .workers = workers, .shuffle = false});
    auto epoch = loader.epoch(0);
    EXPECT_EQ(epoch.next()->indices[0], 0);
    EXPECT_EQ(epoch.next()->indices[0], 5);
    try {
      epoch.next();
      ADD_FAILURE() << "no error";
    } catch (const FormatError& error) {
      EXPECT_STREQ(error.what(), "sample 13 of the data set: not an image");
    }
  }
}

// Collating sample 5 fails.
class Uncollatable final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  Sample get(int64_t index, uint64_t) const override {
    return {torch::zeros({index == 5 ? 2 : 1})};
  }
};

TEST(Loader, ABatchThatCannotBeMadeIsNamedAndGivenUp) {
  for (const int workers : {0, 2}) {
    const Loader loader(
        std::make_shared<Uncollatable>(), {0, 1}, at::kCPU,
        {.batch_size = 2, .workers = workers, .shuffle = false});
    auto epoch = loader.epoch(0);
    epoch.next();
    epoch.next();
    try {
      epoch.next();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("making a batch of samples 4, 5: stack"))
          << text;
      EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
    }
    EXPECT_EQ(epoch.next()->indices[0], 6);
    EXPECT_FALSE(epoch.next().has_value());
  }
}

TEST(Loader, ReadsAheadAndNotFurther) {
  const auto data = std::make_shared<Numbers>(1000);
  const Loader loader(data, {0, 1}, at::kCPU,
                      {.batch_size = 10, .workers = 2, .prefetch_batches = 3});
  auto epoch = loader.epoch(0);
  epoch.next();
  const auto pause = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  for (int turn = 0; turn < 200 && data->loaded < 40; ++turn) pause();
  pause();
  EXPECT_EQ(data->loaded, 40);  // one used, three ahead
}

TEST(Loader, CanBeLeftEarlyAndUsedAgain) {
  const auto data = std::make_shared<Numbers>(100);
  const Loader loader(data, {0, 1}, at::kCPU, {.batch_size = 4, .workers = 2});
  for (int turn = 0; turn < 5; ++turn) {
    auto epoch = loader.epoch(0);
    for (const Batch& batch : epoch) {
      if (batch.next.sample == 12) break;
    }
  }
  EXPECT_EQ(read(loader.epoch(0)).size(), 25u);
}

// Made as fast as can be: workers look for work while others make batches.
TEST(Loader, LoadsNoSampleTwiceWhileBatchesAreMade) {
  class Counted final : public Dataset {
   public:
    int64_t size() const override { return 60'000; }
    Sample get(int64_t index, uint64_t) const override {
      ++loaded.at(static_cast<size_t>(index));
      return {};
    }
    Sample collate(std::vector<Sample>) const override { return {}; }
    mutable std::vector<std::atomic<int>> loaded =
        std::vector<std::atomic<int>>(60'000);
  };
  const auto data = std::make_shared<Counted>();
  const Loader loader(data, Shard{}, at::kCPU,
                      {.batch_size = 3, .workers = 8, .prefetch_batches = 8});
  for (int epoch = 0; epoch < 10; ++epoch) {
    EXPECT_EQ(read(loader.epoch(epoch)).size(), 20'000U);
  }
  for (const auto& count : data->loaded) ASSERT_EQ(count, 10);
}

TEST(Loader, RefusesBadSettings) {
  const auto data = std::make_shared<Numbers>(10);
  EXPECT_THROW(Loader(nullptr, {0, 1}, at::kCPU, {}), ConfigError);
  EXPECT_THROW(Loader(data, {0, 1}, at::kCPU, {.batch_size = 0}), ConfigError);
  EXPECT_THROW(Loader(data, {0, 1}, at::kCPU, {.workers = -1}), ConfigError);
  EXPECT_THROW(Loader(data, {0, 1}, at::kCPU, {.prefetch_batches = 0}),
               ConfigError);
  const Loader loader(data, {0, 1}, at::kCPU, {.batch_size = 5});
  EXPECT_THROW(loader.resume({.sample = 11}), ConfigError);
  EXPECT_THROW(TensorDataset({torch::ones({3}), torch::ones({4})}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
