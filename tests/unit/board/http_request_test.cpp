#include "lockstep/board/http_request.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using board::ParsedRequest;
using Kind = board::ParsedRequest::Kind;

constexpr const char* kHost = "Host: localhost\r\n\r\n";

ParsedRequest parsed(const std::string& line) {
  return board::parse_request(line + "\r\n" + kHost);
}

int status_of(const std::string& bytes) {
  const ParsedRequest result = board::parse_request(bytes);
  return result.kind == Kind::kRefused ? result.status : 0;
}

TEST(HttpRequest, ReadsPathAndQuery) {
  const ParsedRequest result =
      parsed("GET /api/run?run=a%2Fb%20c&x=1+2&empty&=%41 HTTP/1.1");
  ASSERT_EQ(result.kind, Kind::kComplete);
  EXPECT_EQ(result.request.path, "/api/run");
  EXPECT_EQ(result.request.value("run"), "a/b c");
  EXPECT_EQ(result.request.value("x"), "1 2");
  EXPECT_EQ(result.request.value("empty"), "");
  EXPECT_EQ(result.request.value(""), "A");
  EXPECT_FALSE(result.request.value("none"));
  EXPECT_EQ(result.request.host, "localhost");
  EXPECT_TRUE(result.request.keep_alive);
}

TEST(HttpRequest, ReadsHeadersWhateverTheirCase) {
  const ParsedRequest result = board::parse_request(
      "HEAD / HTTP/1.1\r\nHOST: [::1]:80\r\ncookie: a=b\r\n"
      "Authorization: Bearer x\r\nConnection: Close\r\nX: y\r\n\r\nrest");
  ASSERT_EQ(result.kind, Kind::kComplete);
  EXPECT_TRUE(result.request.is_head);
  EXPECT_EQ(result.request.host, "[::1]:80");
  EXPECT_EQ(result.request.cookie, "a=b");
  EXPECT_EQ(result.request.authorization, "Bearer x");
  EXPECT_FALSE(result.request.keep_alive);
}

TEST(HttpRequest, WaitsForTheWholeRequestAndLeavesTheNextOne) {
  const std::string whole = std::string("GET / HTTP/1.1\r\n") + kHost;
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(board::parse_request(whole.substr(0, size)).kind,
              Kind::kIncomplete)
        << size;
  }
  EXPECT_EQ(board::parse_request(whole + whole).size, whole.size());
}

TEST(HttpRequest, RefusesWhatIsNotAReadingRequest) {
  const std::string host = kHost;
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\n" + host), 405);
  EXPECT_EQ(status_of("DELETE / HTTP/1.1\r\n" + host), 405);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n" + host), 505);
  EXPECT_EQ(status_of("GET /\r\n" + host), 400);
  EXPECT_EQ(status_of("GET http://x/ HTTP/1.1\r\n" + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n" + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nno colon\r\n" + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n folded: x\r\n" + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: \x01\r\n" + host), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nContent-Length: 5\r\n" + host), 413);
  EXPECT_EQ(
      status_of("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + host),
      413);
  for (const char* target : {"/%", "/%4", "/%zz", "/%00", "/a b", "/?%"}) {
    EXPECT_EQ(status_of("GET " + std::string(target) + " HTTP/1.1\r\n" + host),
              400)
        << target;
  }
}

TEST(HttpRequest, RefusesOtherProtocolsAndTooMuch) {
  EXPECT_EQ(status_of(std::string("\x16\x03\x01\x02\x00\x01", 6)), 400);
  EXPECT_EQ(status_of(std::string(100, 'A')), 400);
  EXPECT_EQ(status_of("GET /" + std::string(20'000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(many + kHost), 431);
}

}  // namespace
}  // namespace lockstep
