// Files with random damage are refused or read as they were; nothing crashes.
// The build with AddressSanitizer runs these too.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "lockstep/formats/npz.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

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
  const std::string whole = read_file(path);
  const std::string expected = read(path);
  const FileDescriptor file(memfd_create("damaged", MFD_CLOEXEC));
  const std::string copy = "/proc/self/fd/" + std::to_string(file.get());
  std::mt19937 random(11);
  Outcome outcome;
  for (int i = 0; i < times; ++i) {
    const std::string bytes = damaged(whole, random);
    EXPECT_EQ(ftruncate(file.get(), 0), 0);
    EXPECT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
    EXPECT_TRUE(write_all(file.get(), bytes));
    try {
      ++(read(copy) == expected ? outcome.harmless : outcome.changed);
    } catch (const FormatError&) {
      ++outcome.refused;
    }
  }
  return outcome;
}

std::string describe_torch_file(const std::string& path) {
  return testing::describe(read_torch_file(path));
}

std::string describe_tensors(const NamedTensors& tensors) {
  Value value = Value::dict();
  for (const auto& [name, tensor] : tensors) value[name] = tensor;
  return testing::describe(value);
}

TEST(Damage, OfTorchFilesIsFoundOrHarmless) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.pt";
  write_torch_file(path, testing::sample_value());
  const Outcome outcome = damage(path, 10'000, describe_torch_file);
  EXPECT_EQ(outcome.changed, 0);
  EXPECT_GT(outcome.refused, 5'000);
  EXPECT_GT(outcome.harmless, 0);  // padding, dates
}

TEST(Damage, OfNpzFilesIsFoundOrHarmless) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.npz";
  write_npz(path, {{"mu", testing::float_tensor({2, 2}, {1, 2, 3, 4})}});
  const Outcome outcome = damage(path, 3'000, [](const std::string& file) {
    return describe_tensors(read_npz(file));
  });
  EXPECT_EQ(outcome.changed, 0);
  EXPECT_GT(outcome.refused, 1'000);
}

// Without checksums content may change; it must not crash.
TEST(Damage, OfSafetensorsDoesNotCrash) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.safetensors";
  write_safetensors(path, {{{"mu", testing::float_tensor({2, 2}, {1, 2, 3, 4})},
                            {"x", testing::float_tensor({}, {1})}}});
  const Outcome outcome = damage(path, 3'000, [](const std::string& file) {
    return describe_tensors(read_safetensors(file).tensors);
  });
  EXPECT_GT(outcome.refused, 1'000);
}

TEST(Damage, OfOldTorchFilesDoesNotCrash) {
  const testing::TempDir folder;
  const Value value = testing::sample_value();
  const Pickle pickle = write_pickle(value);
  Value system;
  system["little_endian"] = true;
  Value keys = Value::list();
  std::string storages;
  for (size_t i = 0; i < pickle.storages.size(); ++i) {
    keys.push_back(std::to_string(i));
    const auto count = static_cast<int64_t>(pickle.storages[i].size() / 4);
    storages += std::string(reinterpret_cast<const char*>(&count), 8);
    storages += as_text(pickle.storages[i]);
  }
  const auto path = std::filesystem::path(folder.write(
      "a.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s +
                  write_pickle(1001).bytes + write_pickle(system).bytes +
                  pickle.bytes + write_pickle(keys).bytes + storages));
  EXPECT_EQ(testing::describe(read_torch_file(path)), testing::describe(value));
  const Outcome outcome = damage(path, 10'000, describe_torch_file);
  EXPECT_GT(outcome.refused, 3'000);
}

TEST(Damage, OfPicklesDoesNotCrash) {
  const Value value = testing::sample_value();
  const std::string whole = write_pickle(value).bytes;
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string pickle = damaged(whole, random);
    ByteReader in(as_bytes(pickle));
    try {
      read_pickle(in, [](std::string_view, int64_t num_bytes) {
        if (num_bytes > 1'000) throw FormatError("no such storage");
        return ByteStorage::own(
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
