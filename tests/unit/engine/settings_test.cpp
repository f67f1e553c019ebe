#include "lockstep/settings.h"

#include <gtest/gtest.h>

#include "lockstep/config/parse.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(Settings, HaveTheCommonOptionsFromTheStart) {
  Settings settings;
  config::parse_command(settings.options, {"--epochs=7"});
  EXPECT_EQ(settings.common.epochs, 7);
}

TEST(Settings, RulesRunInTheOrderOfRegistrationAndOnlyWhenResolved) {
  Settings settings;
  std::string order;
  settings.add_rule([&] { order += "a"; });
  settings.add_rule([&] { order += "b"; });
  EXPECT_EQ(order, "");
  settings.resolve();
  settings.resolve();
  EXPECT_EQ(order, "abab");
}

TEST(Settings, ARuleSetsDefaultsAndLeavesWhatWasGiven) {
  Settings settings;
  settings.add_rule([&] {
    settings.set_default("epochs", settings.common.epochs, 20);
    settings.set_default("device", settings.common.device, "cpu");
  });
  config::parse_command(settings.options, {"--epochs=7"});
  settings.resolve();
  EXPECT_EQ(settings.common.epochs, 7);
  EXPECT_EQ(settings.common.device, "cpu");
}

TEST(Settings, ARuleMayRefuseThem) {
  Settings settings;
  settings.add_rule([] { throw ConfigError("no"); });
  EXPECT_THROW(settings.resolve(), ConfigError);
}

}  // namespace
}  // namespace lockstep
