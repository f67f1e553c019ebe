#include "lockstep/track/wandb_log.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using testing::TempDir;

constexpr size_t kBlock = 32768;
constexpr size_t kFileHeader = 7;
constexpr size_t kChunkHeader = 7;

std::string payload(size_t size, char begin = 'a') {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>(begin + i % 23);
  }
  return text;
}

std::filesystem::path write_log(const TempDir& folder,
                                const std::vector<std::string>& records) {
  const auto path = folder.path() / "run.wandb";
  std::filesystem::remove(path);
  track::WandbLog log(path);
  for (const auto& record : records) log.append(record);
  return path;
}

TEST(WandbLog, BeginsWithTheFileHeaderAndFramesAsLevelDb) {
  const TempDir folder;
  const std::string bytes = base::read_file(write_log(folder, {"abc"}));
  // The check sum is zlib.crc32(b"\x01abc").
  const std::string expected(
      ":W&B\xe1\xbe\x00"
      "\xa9\x20\x9d\x53\x03\x00\x01"
      "abc",
      17);
  EXPECT_EQ(bytes, expected);
}

TEST(WandbLog, RecordsOfEverySizeAroundBlocksAreReadBack) {
  const TempDir folder;
  const size_t first_room = kBlock - kFileHeader - kChunkHeader;
  for (const size_t blocks : {0, 1, 2}) {
    const size_t middle = first_room + blocks * (kBlock - kChunkHeader);
    for (size_t size = middle - 20; size <= middle + 20; ++size) {
      const std::vector<std::string> records = {payload(size), payload(5, 'A'),
                                                payload(40000, '0'), ""};
      const auto path = write_log(folder, records);
      ASSERT_EQ(track::read_wandb_log(path), records) << size;
      ASSERT_EQ(base::read_file(path), track::wandb_log_bytes(records)) << size;
    }
  }
}

TEST(WandbLog, NoChunkCrossesABlock) {
  // So much is left in the block behind the first record.
  for (size_t left = 0; left <= 9; ++left) {
    const size_t size = kBlock - kFileHeader - kChunkHeader - left;
    const std::string bytes =
        track::wandb_log_bytes(std::vector<std::string>{payload(size), "next"});
    if (left < kChunkHeader) {
      EXPECT_EQ(bytes.size(), kBlock + kChunkHeader + 4) << left;
      EXPECT_EQ(bytes.substr(kBlock - left, left), std::string(left, '\0'));
      EXPECT_EQ(bytes[kBlock + 6], 1) << "a whole record begins the block";
    } else {
      // A first chunk with what fits, which may be nothing, and the rest.
      const size_t fits = left - kChunkHeader;
      EXPECT_EQ(bytes[kBlock - left + 4], static_cast<char>(fits));
      EXPECT_EQ(bytes[kBlock - left + 6], 2);
      EXPECT_EQ(bytes[kBlock + 4], static_cast<char>(4 - fits));
      EXPECT_EQ(bytes[kBlock + 6], 4);
    }
  }
}

TEST(WandbLog, ATornTailIsLeftOut) {
  const TempDir folder;
  const std::vector<std::string> whole = {"one", "two"};
  const auto path = write_log(folder, whole);
  const std::string before = base::read_file(path);
  const std::string torn = track::wandb_frame(payload(100000), before.size());
  for (const size_t cut : {1, 6, 7, 8, 1000, 40000, 99999}) {
    const std::string file =
        folder.write("torn.wandb", before + torn.substr(0, cut));
    EXPECT_EQ(track::read_wandb_log(file), whole) << cut;
  }
  EXPECT_EQ(track::read_wandb_log(
                folder.write("zeros.wandb", before + std::string(500, '\0'))),
            whole);
}

TEST(WandbLog, DamageCostsOnlyTheRecordsOfItsBlock) {
  const TempDir folder;
  const std::vector<std::string> records = {"one", payload(50000),
                                            payload(50000, 'A'), "last"};
  std::string bytes = track::wandb_log_bytes(records);
  bytes[200] ^= 1;
  const auto read = track::read_wandb_log(folder.write("damaged.wandb", bytes));
  EXPECT_EQ(read, (std::vector<std::string>{"one", records[2], "last"}));
}

TEST(WandbLog, GoesOnBehindWhatIsThere) {
  const TempDir folder;
  const auto path = write_log(folder, {"one"});
  track::WandbLog(path).append("two");
  EXPECT_EQ(track::read_wandb_log(path),
            (std::vector<std::string>{"one", "two"}));
}

TEST(WandbLog, AFailedWriteLeavesWholeRecordsAndLaterOnesGoOn) {
  const TempDir folder;
  const auto path = folder.path() / "run.wandb";
  track::WandbLog log(path);
  log.append(payload(1000));
  {
    // 500 bytes of the record would fit.
    const FileSizeLimit limit(7 + 7 + 1000 + 500);
    EXPECT_THROW(log.append(payload(2000, 'A')), IoError);
    EXPECT_EQ(base::read_file(path).size(), 7 + 7 + 1000);
    log.append("small");
    EXPECT_THROW(log.append(payload(70000, 'A')), IoError);
  }
  log.append(payload(3000, '0'));
  EXPECT_EQ(
      track::read_wandb_log(path),
      (std::vector<std::string>{payload(1000), "small", payload(3000, '0')}));
}

TEST(WandbLog, OtherFilesAreRefused) {
  const TempDir folder;
  EXPECT_THROW(track::read_wandb_log(folder.write("a", "something else")),
               FormatError);
  EXPECT_THROW(track::read_wandb_log(folder.write("b", "")), FormatError);
  EXPECT_THROW(track::read_wandb_log(folder.path() / "none"), IoError);
  EXPECT_THROW(track::WandbLog("/no/such/folder/run.wandb"), IoError);
}

}  // namespace
}  // namespace lockstep
