#include "lockstep/nodes/handshake.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using nodes::ClientHandshake;
using nodes::JobIdentity;
using nodes::ServerHandshake;
using testing::expect_in;

const JobIdentity kJob = nodes::identify_job("the secret", "job");

template <typename Expected, typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Handshake, GivesBothEndsTheSameKeys) {
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{4096}}) {
    ClientHandshake client(kJob);
    ServerHandshake server(kJob);
    const auto pass = [piece](const std::string& bytes, auto& to) {
      std::string reply;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        to.receive(std::string_view(bytes).substr(at, piece), reply);
      }
      return reply;
    };
    const std::string answer = pass(client.hello(), server);
    EXPECT_FALSE(server.keys());
    const std::string proof = pass(answer, client);
    EXPECT_EQ(pass(proof + "behind", server), "");
    ASSERT_TRUE(server.keys() && client.keys());
    EXPECT_EQ(server.keys()->to_client, client.keys()->to_client);
    EXPECT_EQ(server.keys()->to_server, client.keys()->to_server);
    EXPECT_NE(server.keys()->to_server, server.keys()->to_client);
    EXPECT_EQ(server.rest(), "behind");
  }
}

TEST(Handshake, TheKeysOfTwoConnectionsDiffer) {
  std::vector<std::string> keys;
  for (int i = 0; i < 2; ++i) {
    ClientHandshake client(kJob);
    ServerHandshake server(kJob);
    std::string answer;
    std::string proof;
    server.receive(client.hello(), answer);
    client.receive(answer, proof);
    keys.push_back(client.keys()->to_server);
  }
  EXPECT_NE(keys[0], keys[1]);
}

TEST(Handshake, AnotherSecretIsRefusedByBothEnds) {
  const JobIdentity other = nodes::identify_job("another secret", "job");
  ClientHandshake client(other);
  ServerHandshake server(kJob);
  std::string answer;
  std::string proof;
  server.receive(client.hello(), answer);
  expect_in(error_of<ConfigError>([&] { client.receive(answer, proof); }),
            "another secret");
  expect_in(error_of<FormatError>([&] { server.receive(proof, answer); }),
            "another secret");
  EXPECT_FALSE(client.keys() || server.keys());
}

TEST(Handshake, AnotherJobAndAnotherVersionAreSaid) {
  const JobIdentity other = nodes::identify_job("the secret", "another job");
  ClientHandshake client(other);
  ServerHandshake server(kJob);
  std::string answer;
  std::string proof;
  expect_in(
      error_of<FormatError>([&] { server.receive(client.hello(), answer); }),
      "another job");
  expect_in(error_of<ConfigError>([&] { client.receive(answer, proof); }),
            "--rdzv-id differs");
  ClientHandshake newer(kJob);
  ServerHandshake older(kJob);
  std::string hello = newer.hello();
  hello[16] = 3;  // The version follows the magic.
  answer.clear();
  expect_in(error_of<FormatError>([&] { older.receive(hello, answer); }),
            "another version");
  answer[16] = 3;
  expect_in(error_of<ConfigError>([&] { newer.receive(answer, proof); }),
            "has version 3 of the launchers' protocol, this one 2");
}

// A server that replays what it heard cannot take part.
TEST(Handshake, AStrangerCannotRepeatAnOldAnswer) {
  ClientHandshake first(kJob);
  ServerHandshake server(kJob);
  std::string answer;
  std::string proof;
  server.receive(first.hello(), answer);
  ClientHandshake second(kJob);
  expect_in(error_of<ConfigError>([&] { second.receive(answer, proof); }),
            "another secret");
  first.receive(answer, proof);
  ServerHandshake next(kJob);
  std::string ignored;
  next.receive(first.hello(), ignored);
  EXPECT_THROW(next.receive(proof, ignored), FormatError);
}

TEST(Handshake, StrangeBytesAreRefusedAtTheFirstOne) {
  for (const std::string& bytes :
       {std::string("G"), std::string("lockstep nodez"),
        std::string(1, '\0')}) {
    ServerHandshake server(kJob);
    std::string reply;
    EXPECT_THROW(server.receive(bytes, reply), FormatError) << bytes;
    EXPECT_EQ(reply, "");
    ClientHandshake client(kJob);
    EXPECT_THROW(client.receive(bytes, reply), FormatError) << bytes;
  }
}

}  // namespace
}  // namespace lockstep
