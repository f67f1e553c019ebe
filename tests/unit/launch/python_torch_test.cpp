#include "lockstep/launch/python_torch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;
namespace fs = std::filesystem;

// A real Python that finds its packages in `folder`.
std::string ask(const fs::path& folder) {
  base::Environment environment = base::process_environment();
  environment["PYTHONPATH"] = folder;
  return launch::torch_folder_of_python("python3", environment);
}

TEST(PythonTorch, FindsThePackageWithoutImportingIt) {
  const TempDir packages;
  fs::create_directory(packages.path() / "torch");
  packages.write("torch/__init__.py", "raise SystemExit('imported')\n");
  EXPECT_EQ(ask(packages.path()), packages.path() / "torch");
}

TEST(PythonTorch, AFolderThatIsNotAPackageIsNotTorch) {
  const TempDir packages;
  fs::create_directories(packages.path() / "torch" / "lib");
  EXPECT_NE(ask(packages.path()), packages.path() / "torch");
}

TEST(PythonTorch, TheLastLineOfAnswersCounts) {
  const TempDir bin;
  const auto python = bin.write_script(
      "python3", "#!/bin/sh\necho 'a greeting'\necho /site/torch\n");
  EXPECT_EQ(launch::torch_folder_of_python(python, {}), "/site/torch");
}

TEST(PythonTorch, PythonsThatFailOrAreMissingHaveNone) {
  const TempDir bin;
  const auto python =
      bin.write_script("python3", "#!/bin/sh\necho /site/torch\nexit 1\n");
  EXPECT_EQ(launch::torch_folder_of_python(python, {}), "");
  EXPECT_EQ(launch::torch_folder_of_python("/no/such/python3", {}), "");
  EXPECT_EQ(launch::torch_folder_of_python("python3", {{"PATH", "/no/such"}}),
            "");
}

}  // namespace
}  // namespace lockstep
