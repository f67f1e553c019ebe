#include "lockstep/base/place_change.h"

#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

const PlaceChange kChange = {
    .variables = {{"RANK", "3"}, {"MASTER_ADDR", "fd00::1%\"eth0\""}},
    .store_secret = std::string("\x00\xff\"\x80", 4)};

TEST(PlaceChange, IsReadAsItWasWritten) {
  SlotFile slots;
  slots.write(0, 7, "what the rank alone knows");
  write_place_change(slots, 7, kChange);
  const auto change = read_place_change(slots, 7);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->variables, kChange.variables);
  EXPECT_EQ(change->store_secret, kChange.store_secret);
  EXPECT_EQ(slots.read(0, 7), "what the rank alone knows");
  write_place_change(slots, 8, {});
  EXPECT_EQ(read_place_change(slots, 8)->store_secret, "");
  EXPECT_TRUE(read_place_change(slots, 8)->variables.empty());
}

TEST(PlaceChange, IsOfItsGenerationOnly) {
  SlotFile slots;
  EXPECT_FALSE(read_place_change(slots, 0));
  write_place_change(slots, 4, kChange);
  for (const int other : {0, 2, 3, 5, 6}) {
    EXPECT_FALSE(read_place_change(slots, other)) << other;
  }
  // The one before it stays, for a rank that reads it at this moment.
  write_place_change(slots, 5, {});
  EXPECT_EQ(read_place_change(slots, 4)->variables, kChange.variables);
}

TEST(PlaceChange, ALaterOneIsKnown) {
  SlotFile slots;
  EXPECT_FALSE(has_later_place_change(slots, 0));
  write_place_change(slots, 5, kChange);
  EXPECT_TRUE(has_later_place_change(slots, 4));
  EXPECT_FALSE(has_later_place_change(slots, 5));
  EXPECT_FALSE(has_later_place_change(slots, 6));
}

TEST(SpansNodes, OfSeveralNodesAndWhereTheirNumberMayChange) {
  EXPECT_FALSE(spans_nodes({}));
  EXPECT_FALSE(spans_nodes({{"GROUP_WORLD_SIZE", "1"}}));
  EXPECT_TRUE(spans_nodes({{"GROUP_WORLD_SIZE", "2"}}));
  EXPECT_TRUE(
      spans_nodes({{"GROUP_WORLD_SIZE", "1"}, {"LOCKSTEP_ELASTIC", "1:2"}}));
}

TEST(CurrentEnvironment, IsThatOfTheStartUntilThePlaceChanges) {
  const Environment alone = {{"RANK", "5"}};
  EXPECT_EQ(current_environment(alone), alone);
  const SlotFile slots;
  const Environment started = {{"RANK", "5"},
                               {kSlotFileVariable, std::to_string(slots.fd())}};
  EXPECT_EQ(current_environment(started), started);
}

TEST(CurrentEnvironment, HasTheNewestChange) {
  SlotFile slots;
  Environment expected = {{"RANK", "5"},
                          {"LOCAL_RANK", "1"},
                          {kSlotFileVariable, std::to_string(slots.fd())}};
  const Environment started = expected;
  write_place_change(slots, 1, {.variables = {{"RANK", "4"}}});
  write_place_change(slots, 2, kChange);
  for (const auto& [name, value] : kChange.variables) expected[name] = value;
  EXPECT_EQ(current_environment(started), expected);
}

}  // namespace
}  // namespace lockstep::base
