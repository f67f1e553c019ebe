#include "lockstep/comm/exchange_model.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr comm::Link kLink{.latency_seconds = 1e-3, .bytes_per_second = 1e6};

TEST(ExchangeModel, ARingSendsTwiceAllButOwnPart) {
  EXPECT_DOUBLE_EQ(comm::ring_seconds(kLink, 1, 1e6), 0);
  EXPECT_DOUBLE_EQ(comm::ring_seconds(kLink, 2, 1e6), 2e-3 + 1);
  EXPECT_DOUBLE_EQ(comm::ring_seconds(kLink, 4, 1e6), 6e-3 + 1.5);
}

TEST(ExchangeModel, TheLinkIsFoundFromTwoTimes) {
  for (const int size : {2, 3, 8}) {
    const comm::Link link =
        comm::fit_link(size, {4, comm::ring_seconds(kLink, size, 4)},
                       {1e6, comm::ring_seconds(kLink, size, 1e6)});
    EXPECT_NEAR(link.latency_seconds, 1e-3, 1e-12);
    EXPECT_NEAR(link.bytes_per_second, 1e6, 1);
  }
}

TEST(ExchangeModel, NoiseGivesFiniteNumbers) {
  const comm::Link link = comm::fit_link(2, {4, 2e-3}, {1e6, 1e-3});
  EXPECT_GE(link.latency_seconds, 0);
  EXPECT_GT(link.bytes_per_second, 0);
}

TEST(ExchangeModel, BackwardHidesAllButTheLastBucket) {
  // 0.1 s of backward per bucket, 0.052 s of exchange.
  const comm::StepShape shape{
      .backward = 0.4, .rest = 0.6, .bucket_bytes = {5e4, 5e4, 5e4, 5e4}};
  const auto step = comm::predict_step(shape, kLink, 2);
  EXPECT_NEAR(step.exposed_seconds, 0.052, 1e-9);
  EXPECT_NEAR(step.seconds, 1.052, 1e-9);
  EXPECT_NEAR(step.efficiency, 1 / 1.052, 1e-9);
}

TEST(ExchangeModel, BucketsQueueBehindASlowLink) {
  // The first is ready after 0.1 s; four take 1.002 s each.
  const comm::StepShape shape{
      .backward = 0.4, .rest = 0, .bucket_bytes = {1e6, 1e6, 1e6, 1e6}};
  EXPECT_NEAR(comm::predict_step(shape, kLink, 2).seconds, 0.1 + 4 * 1.002,
              1e-9);
}

TEST(ExchangeModel, ImbalanceIsAdded) {
  comm::StepShape shape{.backward = 0.4, .rest = 0.6, .bucket_bytes = {1e6}};
  const double even = comm::predict_step(shape, kLink, 4).seconds;
  shape.imbalance = 0.25;
  EXPECT_NEAR(comm::predict_step(shape, kLink, 4).seconds, even + 0.25, 1e-9);
}

TEST(ExchangeModel, OneProcessWaitsForNobody) {
  const comm::StepShape shape{
      .backward = 0.4, .rest = 0.6, .imbalance = 0.1, .bucket_bytes = {1e6}};
  const auto step = comm::predict_step(shape, kLink, 1);
  EXPECT_DOUBLE_EQ(step.seconds, 1);
  EXPECT_DOUBLE_EQ(step.efficiency, 1);
}

TEST(ExchangeModel, SizesAreRead) {
  const auto sizes = comm::parse_cluster_sizes("8x8,64x4");
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].num_processes(), 64);
  EXPECT_EQ(sizes[1].nodes, 64);
  EXPECT_EQ(sizes[1].per_node, 4);
  for (const char* text : {"", "8", "8x", "x8", "8x8,", "8x8x8", "0x8", "-1x8",
                           "8 x 8", "1000000x1000000", "99999999999999999x1"}) {
    EXPECT_THROW(comm::parse_cluster_sizes(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace lockstep
