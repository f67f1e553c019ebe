#include "lockstep/nodes/messages.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using nodes::FormerPlace;
using nodes::Message;

const nodes::Join kJoin = {.num_nodes = 3,
                           .min_nodes = 2,
                           .num_processes = 8,
                           .node = 2,
                           .is_host = true,
                           .host_name = "box",
                           .unix_time = 1.5,
                           .master_addr = "fd00::1",
                           .master_port = 29400,
                           .store_secret = std::string("\x00\xff\x80", 3),
                           .job = "name",
                           .keeps_state = true,
                           .holds_state = true,
                           .former = FormerPlace{.attempt = 3, .node = 1}};

const nodes::World kWorld = {.attempt = 2,
                             .num_restarts = 1,
                             .generation = 4,
                             .node = 1,
                             .num_nodes = 2,
                             .first_rank = 1,
                             .num_ranks = 3,
                             .master_addr = "10.0.0.1",
                             .master_port = 1,
                             .store_secret = "s",
                             .job = "name",
                             .addresses = {"10.0.0.1", "fd00::1"}};

TEST(Messages, AreTheSameAfterTheWay) {
  const std::vector<Message> all = {
      kJoin,
      nodes::Join{},
      nodes::Alive{.is_stuck = true},
      nodes::Ending{.signal = 15, .is_leaving = true},
      nodes::Ending{.suspends = true},
      nodes::Result{.text = "text"},
      nodes::Verdict{.is_restart = true,
                     .is_counted = false,
                     .keeps_state = true,
                     .delay_seconds = 2.5,
                     .exit_code = 137,
                     .stop_signal = 9,
                     .text = "report\n",
                     .cause = "{}",
                     .departed = {0, 2}},
      kWorld,
      nodes::End{.kind = nodes::End::Kind::kStop, .signal = 2},
      nodes::End{.kind = nodes::End::Kind::kRegroup},
      nodes::End{.kind = nodes::End::Kind::kSuspend},
      nodes::Results{.nodes = {{.node = 1,
                                .entry = {"b", 2},
                                .text = "t",
                                .loss = "gone",
                                .may_live = true,
                                .is_leaving = true,
                                .lost_at = 3.5,
                                .clock_offset = -0.25}},
                     .newcomers = {{"c", 4}}},
      nodes::Refusal{.reason = "full"},
      nodes::Queued{.reason = "taken"},
      nodes::Note{.text = "rank 3 is stuck"},
      nodes::Abandon{}};
  for (const Message& message : all) {
    EXPECT_EQ(nodes::decode(nodes::encode(message)), message)
        << message.index();
  }
}

TEST(Messages, ThatMakeNoSenseAreRefused) {
  const auto refuses = [](uint8_t type, const std::string& body) {
    EXPECT_THROW(nodes::decode({.type = type, .body = body}), FormatError)
        << body;
  };
  refuses(0, "");
  refuses(0, "{}");
  refuses(0, "[1, 2]");
  refuses(0, "{");
  refuses(200, "{}");
  refuses(1, R"({"is_stuck": 3})");
  refuses(0, R"({"nodes": 2, "min_nodes": 3})");
  refuses(2, R"({"signal": 1000})");
  refuses(2, R"({"signal": -1})");
  refuses(2, R"({"signal": 1e300})");
  refuses(5, R"({"attempt": 0, "node": 2, "nodes": 2, "first_rank": 0,
                 "ranks": 2, "master_addr": "a", "master_port": 1,
                 "store_secret": "", "job": ""})");
  refuses(5, R"({"attempt": 0, "node": 0, "nodes": 2, "first_rank": 0,
                 "ranks": 2, "master_addr": "a", "master_port": 1,
                 "store_secret": "zz", "job": ""})");
  // A text that is not UTF-8 is made one.
  const Message message = nodes::Refusal{.reason = "\xff"};
  EXPECT_EQ(
      std::get<nodes::Refusal>(nodes::decode(nodes::encode(message))).reason,
      "\xef\xbf\xbd");
}

TEST(Messages, WithOneWrongValueAreRefused) {
  const nodes::Frame world = nodes::encode(nodes::World{.store_secret = "s"});
  ASSERT_NO_THROW(nodes::decode(world));
  using Change = std::pair<const char*, const char*>;
  for (const auto& [from, to] :
       {Change{R"("generation":0)", R"("generation":-1)"},
        Change{R"("generation":0)", R"("generation":true)"},
        Change{R"("generation":0)", R"("other":0)"},
        Change{R"("store_secret":"73")", R"("store_secret":"7")"},
        Change{R"("store_secret":"73")", R"("store_secret":"7z")"},
        Change{R"("store_secret":"73")", R"("store_secret":73)"}}) {
    nodes::Frame changed = world;
    const size_t place = changed.body.find(from);
    ASSERT_NE(place, std::string::npos) << changed.body;
    changed.body.replace(place, std::string_view(from).size(), to);
    EXPECT_THROW(nodes::decode(changed), FormatError) << changed.body;
  }
}

}  // namespace
}  // namespace lockstep
