#include "lockstep/comm/shared_sum.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "lockstep/comm/shared_heap.h"

namespace lockstep::comm {
namespace {

TEST(SharedSum, ChunksAreThoseOfGloosRing) {
  // 2 segments per rank at least, of 1 MiB at most, of whole elements.
  EXPECT_EQ(ring_chunk_bytes(4, 4, 2), 8u);
  EXPECT_EQ(ring_chunk_bytes(4000, 4, 2), 2000u);
  EXPECT_EQ(ring_chunk_bytes(8000056, 8, 3), 3 * 888896u);
}

TEST(SharedSum, AddsInTheOrderOfTheRing) {
  // Chunk 0: (x[2] + x[1]) + x[0]; chunk 1: (x[0] + x[2]) + x[1]. Only
  // one order keeps the small value.
  const std::array<std::vector<float>, 3> values = {
      std::vector<float>{1, 1}, std::vector<float>{-1e8F, -1e8F},
      std::vector<float>{1e8F, 1e8F}};
  std::vector<const std::byte*> sources;
  for (const auto& of_rank : values) {
    sources.push_back(reinterpret_cast<const std::byte*>(of_rank.data()));
  }
  std::array<float, 2> result{};
  std::byte* const target = reinterpret_cast<std::byte*>(result.data());
  reduce_in_ring_order({.element = Element::kFloat32,
                        .reduction = Reduction::kSum,
                        .chunk_bytes = 4,
                        .bytes = 8,
                        .sources = sources,
                        .targets = {&target, 1}});
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(result[1], 0);
}

TEST(SharedSum, WritesResultsOverTheirSources) {
  std::vector<int32_t> a(5000, 3);
  std::vector<int32_t> b(5000, 4);
  const std::array targets = {reinterpret_cast<std::byte*>(a.data()),
                              reinterpret_cast<std::byte*>(b.data())};
  const std::array<const std::byte*, 2> sources = {targets[0], targets[1]};
  reduce_in_ring_order({.element = Element::kInt32,
                        .reduction = Reduction::kProduct,
                        .chunk_bytes = ring_chunk_bytes(a.size() * 4, 4, 2),
                        .bytes = a.size() * 4,
                        .sources = sources,
                        .targets = targets});
  EXPECT_EQ(a, std::vector<int32_t>(5000, 12));
  EXPECT_EQ(b, a);
}

TEST(SharedHeap, JoinsFreedNeighbours) {
  SharedHeap heap(4096, 4096 + 10 * 4096);
  const auto first = heap.allocate(1);
  const auto second = heap.allocate(4 * 4096);
  const auto third = heap.allocate(5 * 4096);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, 4096u);
  EXPECT_EQ(heap.allocate(1), std::nullopt);
  EXPECT_EQ(heap.free(*first), 4096u);
  EXPECT_EQ(heap.free(*third), size_t{5} * 4096);
  EXPECT_EQ(heap.allocate(6 * 4096), std::nullopt);
  heap.free(*second);
  EXPECT_EQ(heap.allocate(10 * 4096), 4096u);
  EXPECT_EQ(heap.allocate(0), std::nullopt);
}

}  // namespace
}  // namespace lockstep::comm
