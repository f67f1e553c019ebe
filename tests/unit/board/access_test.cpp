#include "lockstep/board/access.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using board::Access;

TEST(BoardAccess, WithoutATokenOnlyLoopbackNamesAreServed) {
  const auto access = [](const std::string& host) {
    return board::check_access({.host = host}, {});
  };
  for (const char* host : {"localhost", "localhost:6070", "127.0.0.1:1",
                           "127.1.2.3", "[::1]", "[::1]:80"}) {
    EXPECT_EQ(access(host), Access::kGranted) << host;
  }
  // Names that were made to lead to this machine.
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
        "evil.example:6070", "10.0.0.1", "[::2]", "", "127.0.0", "127.0.0.x",
        "127.0.0.256", "[::1", "localhost@evil.example"}) {
    EXPECT_EQ(access(host), Access::kForeignHost) << host;
  }
}

TEST(BoardAccess, ATokenIsDemandedFromEveryRequest) {
  const board::AccessRules rules{.token = "0123456789abcdef"};
  board::HttpRequest request{.host = "any.name"};
  const auto access = [&] { return board::check_access(request, rules); };
  EXPECT_EQ(access(), Access::kNoToken);
  request.cookie = "a=b; lockstep_board=0123456789abcdeX";
  EXPECT_EQ(access(), Access::kNoToken);
  request.cookie = "a=b; lockstep_board=0123456789abcdef";
  EXPECT_EQ(access(), Access::kGranted);
  request.cookie = "lockstep_board";
  EXPECT_EQ(access(), Access::kNoToken);
  request.authorization = "Bearer 0123456789abcdef";
  EXPECT_EQ(access(), Access::kGranted);
  request.query = {{"token", "wrong"}};
  EXPECT_EQ(access(), Access::kNoToken);
  request.query = {{"token", "0123456789abcdef"}};
  EXPECT_EQ(access(), Access::kGrantedByLink);
}

TEST(BoardAccess, TokensAreRandomAndTheCookieStaysWithThisSite) {
  EXPECT_EQ(board::random_token().size(), 32U);
  EXPECT_NE(board::random_token(), board::random_token());
  const std::string cookie = board::token_cookie("x");
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos);
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
