#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/models/atlas/hub.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

constexpr const char* kModel = "hub/models--owner--some.model";

fs::path make_snapshot(const TempDir& folder, const std::string& commit) {
  const fs::path snapshot = folder.path() / kModel / "snapshots" / commit;
  fs::create_directories(snapshot);
  return snapshot;
}

void write_main(const TempDir& folder, const std::string& commit) {
  fs::create_directories(folder.path() / kModel / "refs");
  folder.write(std::string(kModel) + "/refs/main", commit);
}

std::string hub_refusal(const std::string& name,
                        const base::Environment& environment) {
  return testing::refusal<ConfigError>(
      [&] { atlas::find_model(name, "--vggt_checkpoint", environment); });
}

TEST(AtlasHub, APathThatExistsIsTaken) {
  const TempDir folder;
  const auto file = folder.write("model.pt", "x");
  EXPECT_EQ(atlas::find_model(file, "--a", {}), file);
  EXPECT_EQ(atlas::find_model(folder.path().string(), "--a", {}),
            folder.path());
}

TEST(AtlasHub, ANameIsTheCommitOfMainInTheCache) {
  const TempDir folder;
  make_snapshot(folder, "aaa");
  const fs::path wanted = make_snapshot(folder, "bbb");
  write_main(folder, "bbb\n");
  const std::string root = folder.path().string();
  const std::vector<base::Environment> all = {
      {{"HF_HUB_CACHE", root + "/hub"}, {"HF_HOME", "/nowhere"}},
      {{"HF_HOME", root}, {"HOME", "/nowhere"}},
      {{"HF_HUB_CACHE", ""}, {"HF_HOME", root}}};
  for (const base::Environment& environment : all) {
    EXPECT_EQ(atlas::find_model("owner/some.model", "--a", environment),
              wanted);
  }
  fs::create_directories(folder.path() / ".cache" / "huggingface");
  fs::rename(folder.path() / "hub",
             folder.path() / ".cache" / "huggingface" / "hub");
  EXPECT_EQ(
      atlas::find_model("owner/some.model", "--a", {{"HOME", root}}),
      folder.path() / ".cache" / "huggingface" / kModel / "snapshots" / "bbb");
}

TEST(AtlasHub, TheOnlyCommitIsTakenWithoutMain) {
  const TempDir folder;
  const base::Environment environment = {{"HF_HOME", folder.path().string()}};
  const fs::path only = make_snapshot(folder, "aaa");
  EXPECT_EQ(atlas::find_model("owner/some.model", "--a", environment), only);
  make_snapshot(folder, "bbb");
  EXPECT_NE(hub_refusal("owner/some.model", environment), "accepted");
  write_main(folder, "gone");
  EXPECT_NE(hub_refusal("owner/some.model", environment), "accepted");
}

TEST(AtlasHub, TheErrorSaysWhereItLookedAndHowToDownload) {
  const TempDir folder;
  const base::Environment environment = {{"HF_HOME", folder.path().string()},
                                         {"HF_TOKEN", "hf_secretword"}};
  folder.write("token", "hf_secretword");
  const std::string text = hub_refusal("owner/some.model", environment);
  for (const std::string& part :
       {std::string("--vggt_checkpoint"), (folder.path() / kModel).string(),
        std::string("hf download owner/some.model")}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("secretword"), std::string::npos) << text;
}

TEST(AtlasHub, OtherTextsAreNoNames) {
  const TempDir folder;
  const base::Environment environment = {{"HF_HOME", folder.path().string()}};
  for (const char* name : {"", "model", "a/b/c", "../b", "a/..", "/a", "a/",
                           "a b/c", "./b", "a/b;ls"}) {
    const std::string text = hub_refusal(name, environment);
    EXPECT_NE(text.find("not a Hugging Face hub name"), std::string::npos)
        << name << ": " << text;
    EXPECT_EQ(text.find("hf download"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep
