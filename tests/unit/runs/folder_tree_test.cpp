#include "lockstep/runs/folder_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class FolderTreeTest : public ::testing::Test {
 protected:
  FolderTreeTest() {
    fs::create_directories(folder_.path() / "top/inner");
    folder_.write("secret", "secret");
    folder_.write("top/file", "text");
    folder_.write("top/inner/deep", "deep text");
    fs::create_symlink("../secret", folder_.path() / "top/out");
    fs::create_symlink("file", folder_.path() / "top/within");
    fs::create_directory_symlink("..", folder_.path() / "top/up");
    mkfifo((folder_.path() / "top/pipe").c_str(), 0600);
  }

  const testing::TempDir folder_;
};

TEST_F(FolderTreeTest, ReadsFilesBelowIt) {
  const runs::FolderTree tree(folder_.path() / "top");
  EXPECT_EQ(tree.read("file", 100), "text");
  EXPECT_EQ(tree.read("inner/deep", 100), "deep text");
  EXPECT_EQ(tree.read("inner/deep", 3), std::nullopt);
  EXPECT_EQ(tree.read_end("inner/deep", 4), "text");
  EXPECT_EQ(tree.facts_of("file")->size, 4);
}

TEST_F(FolderTreeTest, NoPathLeadsOut) {
  const runs::FolderTree tree(folder_.path() / "top");
  const std::string absolute = (folder_.path() / "secret").string();
  const std::string with_zero = std::string("file\0x", 6);
  for (const std::string& path :
       {std::string("../secret"), std::string("inner/../../secret"),
        std::string("out"), std::string("up/secret"),
        std::string("up/top/file"), absolute, std::string("/etc/passwd"),
        std::string(""), std::string("."), std::string("inner//deep"),
        std::string("./file"), std::string("inner"), std::string("pipe"),
        with_zero, std::string(10'000, 'x')}) {
    EXPECT_FALSE(tree.open_file(path)) << path;
  }
}

TEST_F(FolderTreeTest, LinksAreNeitherFollowedNorListed) {
  const runs::FolderTree tree(folder_.path() / "top");
  EXPECT_FALSE(tree.open_file("within"));
  const auto entries = tree.list(".", 100);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "file");
  EXPECT_FALSE(entries[0].is_folder);
  EXPECT_EQ(entries[1].name, "inner");
  EXPECT_TRUE(entries[1].is_folder);
  EXPECT_EQ(tree.list(".", 1).size(), 1U);
  EXPECT_TRUE(tree.list("up", 100).empty());
  EXPECT_TRUE(tree.list("..", 100).empty());
}

TEST_F(FolderTreeTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(runs::FolderTree(folder_.path() / "none"), ConfigError);
  EXPECT_THROW(runs::FolderTree(folder_.path() / "secret"), ConfigError);
}

}  // namespace
}  // namespace lockstep
