#include "lockstep/track/record_file.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using testing::TempDir;

TEST(RecordFile, RecordsFollowEachOther) {
  const TempDir folder;
  const auto path = folder.path() / "file";
  track::RecordFile file(path, track::RecordFile::Open::kNew);
  file.append("one,");
  file.append("two,");
  EXPECT_EQ(base::read_file(path), "one,two,");
  track::RecordFile(path, track::RecordFile::Open::kAtEnd).append("three");
  EXPECT_EQ(base::read_file(path), "one,two,three");
  EXPECT_THROW(track::RecordFile(path, track::RecordFile::Open::kNew), IoError);
}

TEST(RecordFile, TheEndIsReplacedByLongerAndShorter) {
  const TempDir folder;
  const auto path = folder.path() / "file";
  track::RecordFile file(path, track::RecordFile::Open::kNew);
  file.append("one,");
  file.append("two,");
  file.replace_end(4, "a long one,");
  EXPECT_EQ(base::read_file(path), "one,a long one,");
  file.replace_end(11, "3,");
  EXPECT_EQ(base::read_file(path), "one,3,");
  file.append("4,");
  EXPECT_EQ(base::read_file(path), "one,3,4,");
}

TEST(RecordFile, ARecordThatDoesNotFitLeavesNoHalf) {
  const TempDir folder;
  const auto path = folder.path() / "file";
  track::RecordFile file(path, track::RecordFile::Open::kNew);
  file.append("12345");
  {
    const FileSizeLimit limit(8);
    EXPECT_THROW(file.append("abcdef"), IoError);
    EXPECT_EQ(base::read_file(path), "12345");
    EXPECT_THROW(file.replace_end(3, "abcdefgh"), IoError);
    EXPECT_EQ(base::read_file(path), "12345");
    file.append("xyz");
  }
  file.append("abcdef");
  EXPECT_EQ(base::read_file(path), "12345xyzabcdef");
}

TEST(RecordFile, AFileThatWasRemovedIsAnError) {
  const TempDir folder;
  const auto path = folder.path() / "file";
  track::RecordFile file(path, track::RecordFile::Open::kNew);
  std::filesystem::remove(path);
  EXPECT_THROW(file.append("x"), IoError);
}

}  // namespace
}  // namespace lockstep
