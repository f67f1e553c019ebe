// Files with random damage are refused or read as they were; nothing crashes.
// The build with AddressSanitizer runs these too.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/npz.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_files.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

// Truncated, or one to four bytes changed.
std::string damaged(std::string bytes, std::mt19937& random) {
  if (random() % 4 == 0) return bytes.substr(0, random() % bytes.size());
  for (auto count = random() % 4 + 1; count > 0; --count) {
    bytes[random() % bytes.size()] ^= static_cast<char>(random() % 255 + 1);
  }
  return bytes;
}

struct Outcome {
  int refused = 0;
  int harmless = 0;
  int changed = 0;
};

// `read` gives a file's content as text. The damaged files lie in memory, since
// a disk would be much slower.
Outcome damage(const std::filesystem::path& path, int times,
               const std::function<std::string(std::string)>& read) {
  const std::string whole = base::read_file(path);
  const std::string expected = read(path);
  const base::FileDescriptor file(memfd_create("damaged", MFD_CLOEXEC));
  const std::string copy = "/proc/self/fd/" + std::to_string(file.get());
  std::mt19937 random(11);
  Outcome outcome;
  for (int i = 0; i < times; ++i) {
    const std::string bytes = damaged(whole, random);
    EXPECT_EQ(ftruncate(file.get(), 0), 0);
    EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
    EXPECT_TRUE(base::write_all(file.get(), bytes));
    try {
      ++(read(copy) == expected ? outcome.harmless : outcome.changed);
    } catch (const FormatError&) {
      ++outcome.refused;
    }
  }
  return outcome;
}

std::string describe_torch_file(const std::string& path) {
  return testing::describe(formats::read_torch_file(path));
}

std::string describe_tensors(const formats::NamedTensors& tensors) {
  formats::Value value = formats::Value::dict();
  for (const auto& [name, tensor] : tensors) value[name] = tensor;
  return testing::describe(value);
}

// As a training saves it: most bytes are those of tensors.
std::filesystem::path write_checkpoint(const testing::TempDir& folder) {
  formats::Value value = testing::sample_value();
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> elements(200, 0.5F + static_cast<float>(i));
    value["layers"][std::to_string(i)]["weight"] =
        testing::float_tensor({10, 20}, elements);
  }
  const auto path = folder.path() / "a.pt";
  formats::write_torch_file(path, value);
  return path;
}

TEST(Damage, OfTorchFilesIsFoundOrHarmless) {
  const testing::TempDir folder;
  const Outcome outcome =
      damage(write_checkpoint(folder), 10'000, describe_torch_file);
  EXPECT_EQ(outcome.changed, 0);
  EXPECT_GT(outcome.refused, 8'000);
  EXPECT_GT(outcome.harmless, 0);  // padding, dates
}

TEST(Damage, ATorchFileCutOffAnywhereIsFound) {
  const testing::TempDir folder;
  const std::string whole = base::read_file(write_checkpoint(folder));
  for (size_t size = 0; size < whole.size(); ++size) {
    // Copied, so that AddressSanitizer knows where it ends.
    const std::vector<char> part(whole.begin(),
                                 whole.begin() + static_cast<long>(size));
    EXPECT_THROW(formats::read_torch_file(
                     formats::ByteSource(std::as_bytes(std::span(part)))),
                 FormatError)
        << size;
  }
}

TEST(Damage, OfNpzFilesIsFoundOrHarmless) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.npz";
  formats::write_npz(path,
                     {{"mu", testing::float_tensor({2, 2}, {1, 2, 3, 4})}});
  const Outcome outcome = damage(path, 3'000, [](const std::string& file) {
    return describe_tensors(formats::read_npz(file));
  });
  EXPECT_EQ(outcome.changed, 0);
  EXPECT_GT(outcome.refused, 1'000);
}

// Without checksums content may change; it must not crash.
TEST(Damage, OfSafetensorsDoesNotCrash) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.safetensors";
  formats::write_safetensors(
      path, {{{"mu", testing::float_tensor({2, 2}, {1, 2, 3, 4})},
              {"x", testing::float_tensor({}, {1})}}});
  const Outcome outcome = damage(path, 3'000, [](const std::string& file) {
    return describe_tensors(formats::read_safetensors(file).tensors);
  });
  EXPECT_GT(outcome.refused, 1'000);
}

TEST(Damage, OfOldTorchFilesDoesNotCrash) {
  const testing::TempDir folder;
  const formats::Value value = testing::sample_value();
  const std::filesystem::path path =
      folder.write("a.pt", testing::old_torch_file(value));
  EXPECT_EQ(testing::describe(formats::read_torch_file(path)),
            testing::describe(value));
  const Outcome outcome = damage(path, 10'000, describe_torch_file);
  EXPECT_GT(outcome.refused, 3'000);
}

TEST(Damage, OfPicklesDoesNotCrash) {
  const formats::Value value = testing::sample_value();
  const std::string whole = formats::write_pickle(value).bytes;
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string pickle = damaged(whole, random);
    formats::ByteReader in(formats::as_bytes(pickle));
    try {
      formats::read_pickle(in, [](std::string_view, int64_t num_bytes) {
        if (num_bytes > 1'000) throw FormatError("no such storage");
        return formats::ByteStorage::own(
            std::vector<std::byte>(static_cast<size_t>(num_bytes)));
      });
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace lockstep
