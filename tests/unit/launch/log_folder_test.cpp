#include "lockstep/launch/log_folder.h"

#include <gtest/gtest.h>

#include "lockstep/base/atomic_file.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Errors = launch::LogFolder::Errors;
using testing::TempDir;

TEST(LogFolder, HasTheLayoutOfTorchrun) {
  const TempDir folder;
  const launch::LogFolder logs((folder.path() / "logs").string(), "job");
  EXPECT_EQ(logs.path().parent_path(), folder.path() / "logs");
  EXPECT_EQ(logs.path().filename().string().substr(0, 4), "job_");
  const auto attempt = logs.make_attempt(1, 3);
  EXPECT_EQ(attempt, logs.path() / "attempt_1");
  EXPECT_TRUE(fs::is_directory(attempt / "2"));
  EXPECT_FALSE(fs::exists(attempt / "3"));
}

TEST(LogFolder, AFolderOfTheUserStays) {
  const TempDir folder;
  const launch::LogFolder logs(folder.path().string(), "job");
  logs.clean(Errors::kRemove);
  EXPECT_TRUE(fs::exists(logs.path()));
}

TEST(LogFolder, ATemporaryFolderWithoutFilesGoes) {
  const launch::LogFolder logs("", "job");
  EXPECT_EQ(logs.path().parent_path().filename().string().substr(0, 13),
            "torchelastic_");
  logs.make_attempt(0, 2);
  logs.clean(Errors::kKeep);
  EXPECT_FALSE(fs::exists(logs.path().parent_path()));
}

TEST(LogFolder, ATemporaryFolderWithFilesStaysWhenTheyMatter) {
  const launch::LogFolder logs("", "job");
  const auto rank = logs.make_attempt(0, 1) / "0";
  base::write_file_atomically(rank / "error.json", "{}");
  base::write_file_atomically(rank / "crash.txt", "");
  logs.clean(Errors::kKeep);
  EXPECT_TRUE(fs::exists(logs.path()));
  base::write_file_atomically(rank / "stdout.log", "x");
  logs.clean(Errors::kRemove);
  EXPECT_TRUE(fs::exists(logs.path()));
  fs::remove(rank / "stdout.log");
  logs.clean(Errors::kRemove);
  EXPECT_FALSE(fs::exists(logs.path()));
}

}  // namespace
}  // namespace lockstep
