#include "lockstep/track/log_file.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

TEST(LogFile, AppendsToWhatIsThere) {
  const testing::TempDir folder;
  const std::string path = folder.write("log.txt", "old\n");
  track::LogFile file(path);
  EXPECT_FALSE(file.append("new\n"));
  EXPECT_EQ(base::read_file(path), "old\nnew\n");
}

TEST(LogFile, AFolderThatIsNotThereIsAnError) {
  try {
    track::LogFile file("/no/such/folder/log.txt");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder/log.txt"),
              std::string::npos);
  }
}

TEST(LogFile, SaysWhyALineIsMissing) {
  EXPECT_NE(track::LogFile("/dev/full")
                .append("x\n")
                .value_or("")
                .find("No space left on device"),
            std::string::npos);
  const testing::TempDir folder;
  track::LogFile file(folder.path() / "log.txt");
  std::filesystem::remove(file.path());
  EXPECT_EQ(file.append("x\n"), "it was removed");
}

}  // namespace
}  // namespace lockstep
