#include "lockstep/net/store_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Q = net::StoreQuery;

// An engine with clients that have said who they are.
class StoreEngineTest : public ::testing::Test {
 protected:
  explicit StoreEngineTest(net::StoreEngineConfig config = {})
      : engine_(config) {
    for (const net::StoreClientId id : {1, 2, 3}) {
      engine_.connect(id);
      ask(id, {.query = Q::kValidate, .number = net::kStoreMagic});
    }
  }

  // What the client got since the last call.
  std::string ask(net::StoreClientId id, const net::StoreRequest& request) {
    engine_.receive(id, net::encode_request(request),
                    [this](net::StoreClientId to, std::string_view bytes) {
                      replies_[to] += bytes;
                    });
    return take(id);
  }

  std::string take(net::StoreClientId id) {
    return std::exchange(replies_[id], "");
  }

  static std::string bytes(std::string_view value) {
    std::string result;
    net::append_bytes(result, value);
    return result;
  }

  static std::string number(int64_t value) {
    std::string result;
    net::append_number(result, static_cast<uint64_t>(value), sizeof(value));
    return result;
  }

  net::StoreEngine engine_;
  std::map<net::StoreClientId, std::string> replies_;
  const std::string stop_ = std::string(1, '\0');
  const std::string canceled_ = std::string(1, '\1');
};

TEST_F(StoreEngineTest, ValuesAreSharedByAllClients) {
  EXPECT_EQ(ask(1, {.query = Q::kSet, .keys = {"/a"}, .values = {"x"}}), "");
  EXPECT_EQ(ask(2, {.query = Q::kGet, .keys = {"/a"}}), bytes("x"));
  EXPECT_EQ(ask(2, {.query = Q::kAppend, .keys = {"/a"}, .values = {"y"}}), "");
  EXPECT_EQ(ask(1, {.query = Q::kGet, .keys = {"/a"}}), bytes("xy"));
  EXPECT_EQ(
      ask(1,
          {.query = Q::kMultiSet, .keys = {"/b", "/c"}, .values = {"1", "2"}}),
      "");
  EXPECT_EQ(ask(2, {.query = Q::kMultiGet, .keys = {"/c", "/b", "/none"}}),
            bytes("2") + bytes("1") + bytes(""));
  EXPECT_EQ(ask(1, {.query = Q::kGetNumKeys}), number(3));
  EXPECT_EQ(ask(1, {.query = Q::kListKeys}),
            number(3) + bytes("/a") + bytes("/b") + bytes("/c"));
  EXPECT_EQ(ask(1, {.query = Q::kDeleteKey, .keys = {"/a"}}), number(1));
  EXPECT_EQ(ask(1, {.query = Q::kDeleteKey, .keys = {"/a"}}), number(0));
  EXPECT_EQ(ask(1, {.query = Q::kCheck, .keys = {"/b", "/c"}}), stop_);
  EXPECT_EQ(ask(1, {.query = Q::kCheck, .keys = {"/a", "/b"}}), "\1");
}

TEST_F(StoreEngineTest, AddCountsAndRefusesText) {
  EXPECT_EQ(ask(1, {.query = Q::kAdd, .keys = {"/n"}, .number = 3}), number(3));
  EXPECT_EQ(ask(2, {.query = Q::kAdd, .keys = {"/n"}, .number = -5}),
            number(-2));
  EXPECT_EQ(ask(1, {.query = Q::kGet, .keys = {"/n"}}), bytes("-2"));
  ask(1, {.query = Q::kSet, .keys = {"/n"}, .values = {"9223372036854775807"}});
  EXPECT_EQ(ask(1, {.query = Q::kAdd, .keys = {"/n"}, .number = 1}),
            number(std::numeric_limits<int64_t>::min()));
  ask(1, {.query = Q::kSet, .keys = {"/n"}, .values = {"text"}});
  EXPECT_THROW(ask(1, {.query = Q::kAdd, .keys = {"/n"}, .number = 1}),
               FormatError);
}

TEST_F(StoreEngineTest, CompareSetAnswersAsLibtorchDoes) {
  const auto compare_set = [&](std::string_view key, std::string_view expected,
                               std::string_view desired) {
    return ask(1, {.query = Q::kCompareSet,
                   .keys = {key},
                   .values = {expected, desired}});
  };
  EXPECT_EQ(compare_set("/c", "", "x"), bytes("x"));
  EXPECT_EQ(compare_set("/c", "y", "z"), bytes("x"));
  EXPECT_EQ(compare_set("/c", "x", "z"), bytes("z"));
  EXPECT_EQ(compare_set("/none", "old", "new"), bytes("old"));
}

TEST_F(StoreEngineTest, AWaitEndsWithTheLastOfItsKeys) {
  EXPECT_EQ(ask(1, {.query = Q::kWait, .keys = {"/a", "/b", "/a"}}), "");
  ask(2, {.query = Q::kSet, .keys = {"/a"}, .values = {""}});
  EXPECT_EQ(take(1), "");
  ask(2, {.query = Q::kAdd, .keys = {"/b"}, .number = 1});
  EXPECT_EQ(take(1), stop_);
  EXPECT_EQ(ask(1, {.query = Q::kWait, .keys = {"/a", "/b"}}), stop_);
}

TEST_F(StoreEngineTest, ACanceledWaitIsForgotten) {
  ask(1, {.query = Q::kWait, .keys = {"/a"}});
  EXPECT_EQ(ask(1, {.query = Q::kCancelWait}), canceled_);
  ask(2, {.query = Q::kSet, .keys = {"/a"}, .values = {""}});
  EXPECT_EQ(take(1), "");
  EXPECT_EQ(ask(1, {.query = Q::kCancelWait}), canceled_);
}

TEST_F(StoreEngineTest, AClientThatLeavesWhileItWaitsIsForgotten) {
  ask(1, {.query = Q::kWait, .keys = {"/a"}});
  engine_.disconnect(1);
  EXPECT_EQ(engine_.num_stored_bytes(), 0u);
  ask(2, {.query = Q::kSet, .keys = {"/a"}, .values = {""}});
  EXPECT_EQ(take(1), "");
}

TEST_F(StoreEngineTest, AValueOfAQueueWakesOneClient) {
  ask(1, {.query = Q::kWait, .keys = {"/q"}});
  ask(2, {.query = Q::kWait, .keys = {"/q"}});
  ask(3, {.query = Q::kQueuePush, .keys = {"/q"}, .values = {"first"}});
  EXPECT_EQ(take(1), stop_);
  EXPECT_EQ(take(2), "");
  EXPECT_EQ(ask(1, {.query = Q::kQueuePop, .keys = {"/q"}}),
            number(1) + bytes("first"));
  EXPECT_EQ(ask(1, {.query = Q::kQueuePop, .keys = {"/q"}}), number(0));
  ask(3, {.query = Q::kQueuePush, .keys = {"/q"}, .values = {"second"}});
  EXPECT_EQ(take(2), stop_);
  EXPECT_EQ(ask(3, {.query = Q::kQueueLength, .keys = {"/q"}}), number(1));
}

TEST_F(StoreEngineTest, WhatIsDeletedGivesItsMemoryBack) {
  ask(1, {.query = Q::kSet, .keys = {"/a"}, .values = {"long value"}});
  ask(1, {.query = Q::kSet, .keys = {"/a"}, .values = {"v"}});
  ask(1, {.query = Q::kAppend, .keys = {"/a"}, .values = {"w"}});
  ask(1, {.query = Q::kQueuePush, .keys = {"/q"}, .values = {"e"}});
  ask(2, {.query = Q::kWait, .keys = {"/w", "/x"}});
  EXPECT_GT(engine_.num_stored_bytes(), 0u);
  ask(1, {.query = Q::kDeleteKey, .keys = {"/a"}});
  ask(1, {.query = Q::kQueuePop, .keys = {"/q"}});
  ask(2, {.query = Q::kCancelWait});
  EXPECT_EQ(engine_.num_stored_bytes(), 0u);
}

TEST_F(StoreEngineTest, TheFirstRequestMustBeTheMagicNumber) {
  for (const net::StoreRequest& first :
       {net::StoreRequest{.query = Q::kGetNumKeys},
        net::StoreRequest{.query = Q::kValidate, .number = 1}}) {
    net::StoreEngine engine({});
    engine.connect(1);
    EXPECT_FALSE(engine.is_validated(1));
    EXPECT_THROW(engine.receive(1, net::encode_request(first), {}),
                 FormatError);
  }
}

TEST_F(StoreEngineTest, ASecondWaitIsRefused) {
  ask(1, {.query = Q::kWait, .keys = {"/a"}});
  EXPECT_THROW(ask(1, {.query = Q::kWait, .keys = {"/b"}}), FormatError);
}

class SmallStore : public StoreEngineTest {
 protected:
  SmallStore()
      : StoreEngineTest({.limits = {.max_value_bytes = 1000,
                                    .max_reply_bytes = 2000,
                                    .max_stored_bytes = 4000}}) {}
};

TEST_F(SmallStore, AFullStoreRefusesAndStaysWhole) {
  const std::string value(900, 'x');
  for (const char* key : {"/1", "/2", "/3"}) {
    ask(1, {.query = Q::kSet, .keys = {key}, .values = {value}});
  }
  const net::StoreRequest too_much = {
      .query = Q::kSet, .keys = {"/4"}, .values = {value}};
  EXPECT_THROW(ask(1, too_much), FormatError);
  EXPECT_THROW(
      ask(2, {.query = Q::kQueuePush, .keys = {"/q"}, .values = {value}}),
      FormatError);
  EXPECT_EQ(ask(3, {.query = Q::kGetNumKeys}), number(3));
  ask(3, {.query = Q::kDeleteKey, .keys = {"/1"}});
  EXPECT_NO_THROW(ask(3, too_much));
}

TEST_F(SmallStore, AValueCannotGrowWithoutEnd) {
  const std::string value(600, 'x');
  const net::StoreRequest append = {
      .query = Q::kAppend, .keys = {"/a"}, .values = {value}};
  ask(1, append);
  EXPECT_THROW(ask(1, append), FormatError);
}

TEST_F(SmallStore, AReplyIsBounded) {
  const std::string value(900, 'x');
  ask(1, {.query = Q::kSet, .keys = {"/1"}, .values = {value}});
  EXPECT_THROW(ask(1, {.query = Q::kMultiGet, .keys = {"/1", "/1", "/1"}}),
               FormatError);
}

class StoreWithSecret : public StoreEngineTest {
 protected:
  StoreWithSecret() : StoreEngineTest({.secret = "sesame"}) {}

  std::string prove(net::StoreClientId id, std::string_view secret) {
    return ask(id, {.query = Q::kCompareSet,
                    .keys = {net::kProofKey},
                    .values = {secret, ""}});
  }
};

TEST_F(StoreWithSecret, KeepsItsKeysFromThoseWhoDoNotKnowIt) {
  EXPECT_EQ(prove(1, "sesame"), bytes(net::kProofAccepted));
  ask(1, {.query = Q::kSet, .keys = {"/lockstep/0/a"}, .values = {"1"}});
  ask(2, {.query = Q::kSet, .keys = {"/public"}, .values = {"2"}});
  EXPECT_EQ(ask(1, {.query = Q::kGetNumKeys}), number(2));
  EXPECT_EQ(ask(2, {.query = Q::kGetNumKeys}), number(1));
  EXPECT_EQ(ask(2, {.query = Q::kListKeys}), number(1) + bytes("/public"));
  for (const net::StoreRequest& request : std::vector<net::StoreRequest>{
           {.query = Q::kGet, .keys = {"/lockstep/0/a"}},
           {.query = Q::kSet, .keys = {"/lockstep/departed"}, .values = {""}},
           {.query = Q::kAdd, .keys = {"/lockstep/claims/1"}, .number = 1},
           {.query = Q::kCheck, .keys = {"/public", "/lockstep/0/a"}},
           {.query = Q::kWait, .keys = {"/lockstep/0/a"}},
           {.query = Q::kDeleteKey, .keys = {"/lockstep/0/a"}},
           {.query = Q::kMultiSet,
            .keys = {"/x", "/lockstep/y"},
            .values = {"", ""}},
           {.query = Q::kQueuePush, .keys = {"/lockstep/q"}, .values = {""}},
       }) {
    EXPECT_THROW(ask(2, request), FormatError);
  }
  EXPECT_EQ(ask(1, {.query = Q::kGet, .keys = {"/lockstep/0/a"}}), bytes("1"));
}

TEST_F(StoreWithSecret, AWrongOneIsRefused) {
  EXPECT_THROW(prove(1, "sesamf"), FormatError);
  EXPECT_THROW(prove(2, ""), FormatError);
  EXPECT_THROW(prove(3, "sesame!"), FormatError);
}

TEST_F(StoreEngineTest, WithoutASecretNothingIsReserved) {
  ask(1, {.query = Q::kSet, .keys = {"/lockstep/0/a"}, .values = {"1"}});
  EXPECT_EQ(ask(2, {.query = Q::kGetNumKeys}), number(1));
  EXPECT_THROW(ask(2, {.query = Q::kCompareSet,
                       .keys = {net::kProofKey},
                       .values = {"", ""}}),
               FormatError);
}

}  // namespace
}  // namespace lockstep
