#include "lockstep/launch/torch_search.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;
namespace fs = std::filesystem;

constexpr const char* kCuda130 =
    "from typing import Optional\n\n"
    "__all__ = ['__version__', 'debug', 'cuda']\n"
    "__version__ = '2.11.0+cu130'\n"
    "cuda: Optional[str] = '13.0'\n";

// Folders that look like torch, programs and virtual environments.
class TorchSearch : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((root_.path() / name).parent_path());
    root_.write(name, text);
  }

  // Returns the folder "torch".
  std::string make_torch(const fs::path& name,
                         const std::string& version_file) const {
    write(name / "lib" / "libtorch_cpu.so", "");
    write(name / "version.py", version_file);
    return root_.path() / name;
  }

  // A Python that gives this answer to every question.
  std::string make_python(const fs::path& name,
                          const std::string& answer) const {
    fs::create_directories((root_.path() / name).parent_path());
    return root_.write_script(name, "#!/bin/sh\necho '" + answer + "'\n");
  }

  // The worker of a package.
  fs::path make_worker(const std::string& more = "") const {
    write("prefix/lib/lockstep/torch.json",
          R"({"version": "2.11.0+cu130", "cuda": "13.0")" + more + "}");
    return root_.path() / "prefix" / "bin" / "lockstep-worker";
  }

  std::string path(const fs::path& name) const { return root_.path() / name; }

  std::string refusal(const base::Environment& environment) const {
    try {
      launch::with_torch(environment, make_worker());
      return "accepted";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }

  TempDir root_;
};

TEST_F(TorchSearch, ReadsTheBuildOfAWheelAndOfALibtorch) {
  make_torch("wheel/torch", kCuda130);
  const auto wheel = launch::torch_in(path("wheel"));
  ASSERT_TRUE(wheel.has_value());
  EXPECT_EQ(wheel->version, "2.11.0+cu130");
  EXPECT_EQ(wheel->cuda, "13.0");
  EXPECT_EQ(wheel->folder, path("wheel/torch"));
  write("libtorch/lib/libtorch_cpu.so", "");
  write("libtorch/build-version", "2.11.0+cu126\n");
  EXPECT_EQ(launch::torch_in(path("libtorch"))->cuda, "12.6");
  write("libtorch/build-version", "2.11.0+cpu\n");
  EXPECT_EQ(launch::torch_in(path("libtorch"))->cuda, "");
  EXPECT_FALSE(launch::torch_in(path("nothing")).has_value());
}

TEST_F(TorchSearch, ReadsTheVersionOfNccl) {
  make_torch("site/torch", kCuda130);
  EXPECT_EQ(launch::nccl_version(*launch::torch_in(path("site"))), "");
  write("site/nvidia/nccl/include/nccl.h",
        "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n"
        "#define NCCL_SUFFIX \"\"\n");
  EXPECT_EQ(launch::nccl_version(*launch::torch_in(path("site"))), "2.28.9");
}

TEST_F(TorchSearch, TheVariableBeatsTheEnvironmentBeatsThePath) {
  const std::string named = make_torch("named/torch", kCuda130);
  const std::string active = make_torch("active/torch", kCuda130);
  const std::string other = make_torch("other/torch", kCuda130);
  make_python("venv/bin/python3", active);
  make_python("bin/python3", other);
  const fs::path programs = make_worker().parent_path();
  base::Environment environment = {{"PATH", path("bin")}};
  EXPECT_EQ(launch::find_torch(environment, programs)->folder, other);
  environment["VIRTUAL_ENV"] = path("venv");
  EXPECT_EQ(launch::find_torch(environment, programs)->folder, active);
  environment["LOCKSTEP_TORCH"] = path("named");
  EXPECT_EQ(launch::find_torch(environment, programs)->folder, named);
}

TEST_F(TorchSearch, FoldersAreAbsolute) {
  const std::string torch = make_torch("site/torch", kCuda130);
  const auto relative = fs::relative(torch, fs::current_path()).string();
  const auto environment =
      launch::with_torch({{"LOCKSTEP_TORCH", relative}}, make_worker());
  EXPECT_TRUE(environment.at("LD_LIBRARY_PATH").starts_with("/"));
}

TEST_F(TorchSearch, AnEnvironmentWithoutTorchIsPassedOver) {
  const std::string other = make_torch("other/torch", kCuda130);
  make_python("venv/bin/python3", "");
  make_python("bin/python3", other);
  const fs::path programs = make_worker().parent_path();
  EXPECT_EQ(
      launch::find_torch({{"PATH", path("bin")}, {"VIRTUAL_ENV", path("venv")}},
                         programs)
          ->folder,
      other);
  EXPECT_FALSE(
      launch::find_torch({{"PATH", "/no/such"}}, programs).has_value());
}

TEST_F(TorchSearch, ProgramsOfAWheelUseThePythonBesideThem) {
  const std::string beside = make_torch("beside/torch", kCuda130);
  const std::string active = make_torch("active/torch", kCuda130);
  make_python("prefix/bin/python3", beside);
  make_python("venv/bin/python3", active);
  const base::Environment environment = {{"VIRTUAL_ENV", path("venv")}};
  const fs::path programs = make_worker().parent_path();
  EXPECT_EQ(launch::find_torch(environment, programs)->folder, active);
  make_worker(R"(, "in_python_environment": true)");
  EXPECT_EQ(launch::find_torch(environment, programs)->folder, beside);
}

TEST_F(TorchSearch, TheWorkerGetsTorchsFoldersInFrontOfItsLibraryPath) {
  const std::string torch = make_torch("site/torch", kCuda130);
  write("site/nvidia/nccl/lib/libnccl.so.2", "");
  write("site/nvidia/cu13/lib/libcudart.so.13", "");
  const auto environment = launch::with_torch(
      {{"LOCKSTEP_TORCH", torch}, {"LD_LIBRARY_PATH", "/mine"}}, make_worker());
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"),
            torch + "/lib:" + path("site/nvidia/cu13/lib") + ":" +
                path("site/nvidia/nccl/lib") + ":/mine");
}

TEST_F(TorchSearch, ABuildThatNamesItsTorchFindsItByItsRunPath) {
  const std::string torch = make_torch("site/torch", kCuda130);
  const fs::path worker = make_worker(R"(, "folder": ")" + torch + "\"");
  EXPECT_EQ(launch::find_torch({}, worker.parent_path())->folder, torch);
  EXPECT_TRUE(launch::with_torch({}, worker).empty());
}

TEST_F(TorchSearch, LinksToTheWorkerAreFollowed) {
  const std::string torch = make_torch("site/torch", kCuda130);
  const fs::path worker = make_worker();
  write("prefix/bin/lockstep-worker", "");
  fs::create_symlink(worker, path("link"));
  const auto environment =
      launch::with_torch({{"LOCKSTEP_TORCH", torch}}, path("link"));
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"), torch + "/lib");
}

TEST_F(TorchSearch, WorkersWithoutTorchAreLeftAlone) {
  EXPECT_TRUE(launch::with_torch({}, path("bin/lockstep-worker")).empty());
}

TEST_F(TorchSearch, OtherBuildsAreRefusedWithWhatToInstall) {
  const struct {
    const char* version;
    const char* cuda;
    const char* expected;
  } cases[] = {
      {"2.11.0+cpu", "None",
       " (2.11.0+cpu) is a CPU build, and this Lockstep needs one for CUDA "
       "13.0; install that one: pip install --force-reinstall torch==2.11.0, "
       "or build Lockstep from source for yours"},
      {"2.11.0+cu126", "'12.6'",
       " (2.11.0+cu126) is built for CUDA 12.6, and this Lockstep needs one "
       "for CUDA 13.0; install that one: pip install --force-reinstall "
       "torch==2.11.0, or build Lockstep from source for yours"},
      {"2.11.1+cu128", "'12.8'",
       " (2.11.1+cu128) is built for CUDA 12.8, and this Lockstep needs one "
       "for CUDA 13.0; install that one: pip install --force-reinstall "
       "torch==2.11.0, or build Lockstep from source for yours"},
      {"2.10.0+cu130", "'13.0'",
       " is 2.10.0+cu130, and this Lockstep was built for 2.11; install that "
       "one: pip install --force-reinstall torch==2.11.0"},
  };
  for (const auto& one : cases) {
    const std::string torch =
        make_torch("torch", std::string("__version__ = '") + one.version +
                                "'\ncuda: Optional[str] = " + one.cuda + "\n");
    EXPECT_EQ(refusal({{"LOCKSTEP_TORCH", torch}}),
              "the torch in " + torch + one.expected);
  }
  make_torch("torch", "__version__ = '2.11.3+cu130'\ncuda = '13.0'\n");
  EXPECT_EQ(refusal({{"LOCKSTEP_TORCH", path("torch")}}), "accepted");
}

TEST_F(TorchSearch, AMissingTorchIsSaidWithWhatToInstall) {
  EXPECT_EQ(refusal({{"PATH", "/no/such"}}),
            "no torch found: neither an active virtual environment nor python3 "
            "has one; install it: pip install --force-reinstall torch==2.11.0, "
            "or name its folder in LOCKSTEP_TORCH");
  EXPECT_EQ(
      refusal({{"LOCKSTEP_TORCH", "/no/such"}}),
      "LOCKSTEP_TORCH=/no/such holds no torch; name a folder 'torch' of a "
      "wheel, a virtual environment or an unpacked libtorch");
}

TEST_F(TorchSearch, ADamagedDescriptionIsSaid) {
  const fs::path worker = make_worker();
  for (const char* text :
       {"", "[]", "{", R"({"version": 2, "cuda": "13.0"})"}) {
    write("prefix/lib/lockstep/torch.json", text);
    EXPECT_THROW(launch::linked_torch(worker.parent_path()), FormatError);
  }
}

}  // namespace
}  // namespace lockstep
