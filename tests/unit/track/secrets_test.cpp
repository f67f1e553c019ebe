#include "lockstep/track/secrets.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Secrets, AreKnownByTheirNames) {
  for (const char* name :
       {"token", "--token", "hf_token", "HF-Token", "authToken", "api_key",
        "WANDB_API_KEY", "apiKey", "server.password", "passwd", "client_secret",
        "aws_access_key", "private-key", "credentials"}) {
    EXPECT_TRUE(track::is_secret_name(name)) << name;
  }
  for (const char* name : {"lr", "max_tokens", "tokenizer", "tokens_per_step",
                           "key", "keyboard", "batch_size", ""}) {
    EXPECT_FALSE(track::is_secret_name(name)) << name;
  }
}

TEST(Secrets, AreHiddenInJsonAtAnyDepth) {
  EXPECT_EQ(track::json_without_secrets(
                R"({"lr":0.1,"api_key":"K","a":[{"token":["K"],"b":1}]})"),
            R"({"lr":0.1,"api_key":"***","a":[{"token":"***","b":1}]})");
}

TEST(Secrets, AreHiddenInArguments) {
  const std::vector<std::string> arguments = {
      "train",     "--token", "K",         "--lr",   "0.1", "--password=K",
      "api_key=K", "--token", "--verbose", "-token", "K",   "--max_tokens",
      "5"};
  const std::vector<std::string> shown = {
      "train",     "--token",        "***",         "--lr",
      "0.1",       "--password=***", "api_key=***", "--token",
      "--verbose", "-token",         "***",         "--max_tokens",
      "5"};
  EXPECT_EQ(track::arguments_without_secrets(arguments), shown);
}

}  // namespace
}  // namespace lockstep
