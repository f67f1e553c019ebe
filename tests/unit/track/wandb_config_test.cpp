#include "lockstep/track/wandb_config.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(WandbConfig, TheEnvironmentFillsInWhatIsNotGiven) {
  const auto config =
      track::with_environment({}, {{"WANDB_MODE", "online"},
                                   {"WANDB_PROJECT", "p"},
                                   {"WANDB_NAME", "n"},
                                   {"WANDB_RUN_ID", "abc"},
                                   {"WANDB_ENTITY", "e"},
                                   {"WANDB_DIR", "/d"},
                                   {"WANDB_TAGS", "a, b,,c"},
                                   {"WANDB_NOTES", "some notes"},
                                   {"WANDB_RUN_GROUP", "g"},
                                   {"WANDB_JOB_TYPE", "j"}});
  EXPECT_EQ(config.mode, track::WandbMode::kOnline);
  EXPECT_EQ(config.project, "p");
  EXPECT_EQ(config.name, "n");
  EXPECT_EQ(config.run_id, "abc");
  EXPECT_EQ(config.entity, "e");
  EXPECT_EQ(config.folder, "/d");
  EXPECT_EQ(config.tags, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(config.notes, "some notes");
  EXPECT_EQ(config.group, "g");
  EXPECT_EQ(config.job_type, "j");
}

TEST(WandbConfig, WhatIsGivenWins) {
  track::WandbConfig given;
  given.mode = track::WandbMode::kDisabled;
  given.project = "mine";
  given.tags = std::vector<std::string>{};
  const auto config = track::with_environment(given, {{"WANDB_MODE", "online"},
                                                      {"WANDB_PROJECT", "p"},
                                                      {"WANDB_NAME", "n"},
                                                      {"WANDB_TAGS", "a"}});
  EXPECT_EQ(config.mode, track::WandbMode::kDisabled);
  EXPECT_EQ(config.project, "mine");
  EXPECT_EQ(config.name, "n");
  EXPECT_TRUE(config.tags->empty());
}

TEST(WandbConfig, WithoutBothNothingIsSet) {
  const auto config = track::with_environment({}, {{"WANDB_NAME", ""}});
  EXPECT_FALSE(config.mode);
  EXPECT_FALSE(config.name);
  EXPECT_FALSE(config.project);
}

TEST(WandbConfig, ModesAreThoseOfWandb) {
  EXPECT_EQ(track::parse_wandb_mode("offline", ""), track::WandbMode::kOffline);
  EXPECT_EQ(track::parse_wandb_mode("dryrun", ""), track::WandbMode::kOffline);
  EXPECT_EQ(track::parse_wandb_mode("online", ""), track::WandbMode::kOnline);
  EXPECT_EQ(track::parse_wandb_mode("disabled", ""),
            track::WandbMode::kDisabled);
  try {
    track::with_environment({}, {{"WANDB_MODE", "of"}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "WANDB_MODE is 'of'; it can be offline, online or disabled");
  }
}

TEST(WandbConfig, NamesThatAServerRefusesAreErrors) {
  for (const char* id : {"a/b", "a b ", " a", "a:b", "a#b"}) {
    EXPECT_THROW(track::with_environment({}, {{"WANDB_RUN_ID", id}}),
                 ConfigError);
    EXPECT_THROW(track::with_environment({}, {{"WANDB_PROJECT", id}}),
                 ConfigError);
  }
  EXPECT_THROW(
      track::with_environment({}, {{"WANDB_PROJECT", std::string(129, 'a')}}),
      ConfigError);
  track::WandbConfig config;
  config.run_id = "";
  EXPECT_THROW(track::check_wandb_names(config), ConfigError);
}

}  // namespace
}  // namespace lockstep
