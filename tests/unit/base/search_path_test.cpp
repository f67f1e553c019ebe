#include "lockstep/base/search_path.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(SearchPath, FindsTheFirstExecutable) {
  const TempDir plain;
  const TempDir first;
  const TempDir second;
  plain.write("tool", "not executable");
  const std::string tool = first.write_script("tool", "#!/bin/sh\n");
  second.write_script("tool", "#!/bin/sh\n");
  const std::string path = "/nothing:" + plain.path().string() + ":" +
                           first.path().string() + ":" + second.path().string();
  EXPECT_EQ(base::find_on_path("tool", {{"PATH", path}}), tool);
  EXPECT_FALSE(base::find_on_path("tool", {{"PATH", plain.path()}}));
  EXPECT_TRUE(base::find_on_path("sh", {}));
}

TEST(SearchPath, AFolderIsNotExecutable) {
  const TempDir folder;
  EXPECT_FALSE(base::is_executable(folder.path()));
}

}  // namespace
}  // namespace lockstep
