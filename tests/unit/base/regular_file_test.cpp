#include "lockstep/base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(RegularFile, IsReadWhole) {
  const TempDir folder;
  const auto path = folder.write("a", "0123456789");
  EXPECT_EQ(base::try_read_regular_file(path, 10), "0123456789");
  EXPECT_EQ(base::try_read_regular_file(folder.write("b", ""), 10), "");
}

TEST(RegularFile, OneThatIsTooLargeIsNotRead) {
  const TempDir folder;
  EXPECT_FALSE(base::try_read_regular_file(folder.write("a", "0123456789"), 9));
}

TEST(RegularFile, TheEndOfALongOneIsRead) {
  const TempDir folder;
  const auto path = folder.write("a", "0123456789");
  EXPECT_EQ(base::try_read_regular_file_end(path, 4), "6789");
  EXPECT_EQ(base::try_read_regular_file_end(path, 40), "0123456789");
}

TEST(RegularFile, APipeALinkAndAFolderAreRefusedWithoutWaiting) {
  const TempDir folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(folder.write("a", "text"), link);
  for (const auto& path : {pipe, link, folder.path(), folder.path() / "no"}) {
    EXPECT_FALSE(base::try_read_regular_file(path, 100)) << path;
    EXPECT_FALSE(base::try_read_regular_file_end(path, 100)) << path;
  }
}

}  // namespace
}  // namespace lockstep
