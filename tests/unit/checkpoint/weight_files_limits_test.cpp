// What weight files take, and what they do when a file is not as it should be.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/temp_dir.h"

// AddressSanitizer keeps freed memory for a while; a test below counts it.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-*)
  return "quarantine_size_mb=1";
}

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::refusal;
using testing::TempDir;
using torch::Tensor;

// Memory of this process, the largest since the last call of
// forget_peak_memory().
int64_t peak_memory() {
  for (const std::string& line :
       base::split(base::read_file("/proc/self/status"), '\n')) {
    const auto words = base::split(line, '\t');
    if (words[0] != "VmHWM:") continue;
    const auto text = base::trim(words[1]);
    return 1024 * *base::parse_integer(text.substr(0, text.find(' ')));
  }
  return 0;
}

void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(WeightFiles, TakeLittleMoreMemoryThanTheirTensors) {
  const TempDir folder;
  constexpr int64_t kBytes = int64_t{160} << 20;
  constexpr int64_t kRoom = int64_t{24} << 20;  // Buffers of threads.
  {
    Tree tree;
    for (int i = 0; i < 4; ++i) {
      tree["t" + std::to_string(i)] = torch::full({kBytes / 16}, i, at::kFloat);
    }
    save_safetensors(folder.path() / "a.safetensors", tree);
    save_checkpoint(folder.path() / "a.pt", tree);
  }
  for (const char* name : {"a.safetensors", "a.pt"}) {
    SCOPED_TRACE(name);
    forget_peak_memory();
    const int64_t before = peak_memory();
    const auto used = [&] { return peak_memory() - before; };
    const checkpoint::WeightFiles files(folder.path() / name);
    files.content_hash();
    EXPECT_LT(used(), kRoom);  // A file with checksums was read completely.
    std::vector<Tensor> tensors;
    for (const std::string& tensor : files.names()) {
      tensors.push_back(files.load(tensor, at::kCPU));
    }
    EXPECT_LT(used(), kBytes + kRoom);
    EXPECT_GT(used(), kBytes * 3 / 4);  // The measure measures.
    tensors.clear();
    forget_peak_memory();
    for (const std::string& tensor : files.names()) {
      tensors.push_back(files.load(tensor, at::kBFloat16));
    }
    // Half of the bytes, and a piece of 32 MiB in the file's type, which malloc
    // keeps: so this comes last.
    EXPECT_LT(used(), kBytes / 2 + (int64_t{32} << 20) + kRoom);
  }
}

// A mapped file would end the process by SIGBUS.
TEST(WeightFiles, AFileCutOffLaterIsAnErrorThatNamesIt) {
  const TempDir folder;
  Tree tree;
  tree["a"] = torch::ones({100'000});
  save_safetensors(folder.path() / "a.safetensors", tree);
  save_checkpoint(folder.path() / "a.pt", tree);
  for (const char* name : {"a.safetensors", "a.pt"}) {
    const fs::path path = folder.path() / name;
    const checkpoint::WeightFiles files(path);
    fs::resize_file(path, 200'000);
    for (const std::string& message :
         {refusal<IoError>([&] { files.get("a"); }),
          refusal<IoError>([&] { files.load("a", at::kCPU); }),
          refusal<IoError>([&] { files.load("a", at::kDouble); }),
          refusal<IoError>([&] { files.row("a", 99'999); }),
          refusal<IoError>([&] { files.content_hash(); })}) {
      EXPECT_TRUE(contains(message, path.string())) << message;
      EXPECT_TRUE(contains(message, "cut off while it was read")) << message;
    }
  }
}

TEST(WeightFiles, TensorsThatRepeatTheirNumbersEndlesslyAreRefused) {
  const TempDir folder;
  Tree tree;
  tree["small"] = torch::ones({1}).expand({1000});
  save_checkpoint(folder.path() / "a.pt", tree);
  EXPECT_TRUE(checkpoint::WeightFiles(folder.path() / "a.pt")
                  .get("small")
                  .equal(torch::ones(1000)));
  tree["large"] = torch::ones({1}).expand({int64_t{1} << 40});
  save_checkpoint(folder.path() / "b.pt", tree);
  EXPECT_TRUE(contains(refusal<FormatError>([&] {
                         checkpoint::WeightFiles(folder.path() / "b.pt");
                       }),
                       "'large'"));
}

TEST(WeightFiles, GiveSingleRows) {
  const TempDir folder;
  const Tensor whole = torch::randn({5, 3, 2});
  Tree tree;
  tree["a"] = whole;
  tree["turned"] = whole.transpose(0, 1);
  save_checkpoint(folder.path() / "a.pt", tree);
  const checkpoint::WeightFiles files(folder.path() / "a.pt");
  EXPECT_TRUE(files.row("a", 4).equal(whole[4]));
  EXPECT_TRUE(files.row("turned", 1).equal(whole.transpose(0, 1)[1]));
  EXPECT_THROW(files.row("a", 5), ConfigError);
  EXPECT_THROW(files.row("a", -1), ConfigError);
}

}  // namespace
}  // namespace lockstep
