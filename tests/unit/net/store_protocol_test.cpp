#include "lockstep/net/store_protocol.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Q = net::StoreQuery;

// Owns what the views of a request point to.
struct Copy {
  net::StoreQuery query;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  int64_t number;
  bool operator==(const Copy&) const = default;
};

Copy copy_of(const net::StoreRequest& request) {
  return {request.query,
          {request.keys.begin(), request.keys.end()},
          {request.values.begin(), request.values.end()},
          request.number};
}

std::vector<net::StoreRequest> one_of_each() {
  return {{.query = Q::kValidate, .number = net::kStoreMagic},
          {.query = Q::kSet, .keys = {"/a"}, .values = {"1"}},
          {.query = Q::kCompareSet, .keys = {"/a"}, .values = {"1", ""}},
          {.query = Q::kGet, .keys = {"/a"}},
          {.query = Q::kAdd, .keys = {"/n"}, .number = -5},
          {.query = Q::kCheck, .keys = {"/a", "", "/b"}, .number = 3},
          {.query = Q::kWait, .keys = {"/a"}, .number = 1},
          {.query = Q::kGetNumKeys},
          {.query = Q::kDeleteKey, .keys = {"/a"}},
          {.query = Q::kAppend, .keys = {"/a"}, .values = {"x"}},
          {.query = Q::kMultiGet, .keys = {}, .number = 0},
          {.query = Q::kMultiSet,
           .keys = {"/a", "/b"},
           .values = {"1", "22"},
           .number = 2},
          {.query = Q::kCancelWait},
          {.query = Q::kPing, .number = 77},
          {.query = Q::kQueuePush, .keys = {"/q"}, .values = {""}},
          {.query = Q::kQueuePop, .keys = {"/q"}},
          {.query = Q::kQueueLength, .keys = {"/q"}},
          {.query = Q::kListKeys}};
}

TEST(StoreProtocol, EveryRequestIsReadHoweverItArrives) {
  const net::StoreLimits limits;
  std::string bytes;
  std::vector<Copy> sent;
  for (const net::StoreRequest& request : one_of_each()) {
    bytes += net::encode_request(request);
    sent.push_back(copy_of(request));
  }
  ASSERT_EQ(sent.size(), net::kNumStoreQueries);
  for (const size_t chunk : {size_t{1}, size_t{7}, bytes.size()}) {
    net::StoreRequestReader reader(limits);
    std::vector<Copy> read;
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      reader.feed(std::string_view(bytes).substr(at, chunk));
      while (const auto request = reader.next()) {
        read.push_back(copy_of(*request));
      }
    }
    EXPECT_EQ(read, sent) << chunk;
    EXPECT_EQ(reader.num_buffered_bytes(), 0u);
  }
}

std::string refusal(const net::StoreLimits& limits, const std::string& bytes) {
  net::StoreRequestReader reader(limits);
  try {
    reader.feed(bytes);
    while (reader.next()) {
    }
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

std::string with_size(net::StoreQuery query, uint64_t size) {
  std::string bytes(1, static_cast<char>(query));
  net::append_number(bytes, size, sizeof(size));
  return bytes;
}

TEST(StoreProtocol, TooMuchIsRefusedBeforeItArrives) {
  const net::StoreLimits limits;
  EXPECT_EQ(refusal(limits, with_size(net::StoreQuery::kGet, 8193)),
            "a key of 8193 bytes; the limit is 8192");
  EXPECT_NE(refusal(limits, with_size(net::StoreQuery::kGet, ~uint64_t{0})),
            "");
  EXPECT_NE(refusal(limits, with_size(net::StoreQuery::kCheck, 200000)), "");
  std::string set(1, static_cast<char>(net::StoreQuery::kSet));
  net::append_bytes(set, "/a");
  net::append_number(set, (uint64_t{8} << 20) + 1, sizeof(uint64_t));
  EXPECT_NE(refusal(limits, set), "");
  EXPECT_EQ(refusal(limits, "\xff"), "unknown query 255");
}

TEST(StoreProtocol, ARequestOfManyKeysIsBoundedInSum) {
  net::StoreLimits limits;
  limits.max_request_bytes = 100;
  std::string bytes = with_size(net::StoreQuery::kCheck, 20);
  for (int i = 0; i < 20; ++i) net::append_bytes(bytes, "0123456789");
  EXPECT_EQ(refusal(limits, bytes), "a request of more than 100 bytes");
}

}  // namespace
}  // namespace lockstep
