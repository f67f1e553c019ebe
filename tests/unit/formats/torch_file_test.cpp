#include "lockstep/formats/torch_file.h"

#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/zip_writer.h"
#include "support/messages.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using testing::refusal;
namespace fs = std::filesystem;

TEST(TorchFile, ValuesComeBackWithTheirSharing) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const formats::Value value = testing::sample_value();
  formats::write_torch_file(path, value);
  EXPECT_EQ(testing::describe(formats::read_torch_file(path)),
            testing::describe(value));
  EXPECT_EQ(testing::describe(formats::read_torch_file(
                path, formats::TorchFileCheck::kStructure)),
            testing::describe(value));
}

TEST(TorchFile, TensorsOutliveTheFile) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const formats::Value value = testing::sample_value();
  formats::write_torch_file(path, value);
  const formats::Value loaded = formats::read_torch_file(path);
  formats::write_torch_file(path, formats::Value::dict());
  fs::remove(path);
  EXPECT_EQ(testing::describe(loaded), testing::describe(value));
}

TEST(TorchFile, TheStructureCheckReadsNoTensors) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  formats::Value value;
  value["x"] = testing::float_tensor({3}, {1, 2, 3});
  formats::write_torch_file(path, value);
  std::string bytes = base::read_file(path);
  const float two = 2;
  bytes[bytes.find(std::string(reinterpret_cast<const char*>(&two), 4))] = 9;
  folder.write("a.pt", bytes);
  EXPECT_NO_THROW(
      formats::read_torch_file(path, formats::TorchFileCheck::kStructure));
  const auto message =
      refusal<FormatError>([&] { formats::read_torch_file(path); });
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
  EXPECT_NE(message.find("CRC"), std::string::npos) << message;
}

TEST(TorchFile, OtherFilesAreRefusedWithAReason) {
  const testing::TempDir folder;
  const fs::path path = folder.write("a.pt", "hello");
  EXPECT_NE(refusal<FormatError>([&] {
              formats::read_torch_file(path);
            }).find("does not begin like a file of torch.save"),
            std::string::npos);
  EXPECT_THROW(formats::read_torch_file(folder.path() / "none.pt"), IoError);
  EXPECT_THROW(formats::read_torch_file(folder.path()), IoError);
  const auto write = [&](const std::vector<std::string>& names) {
    base::AtomicFile file(path);
    formats::ZipWriter zip(file);
    for (const auto& name : names) zip.add(name, formats::as_bytes("N."));
    zip.finish();
    file.commit();
  };
  write({"x/readme"});
  EXPECT_NE(refusal<FormatError>([&] {
              formats::read_torch_file(path);
            }).find("without data.pkl"),
            std::string::npos);
  write({"x/data.pkl", "x/constants.pkl"});
  EXPECT_NE(refusal<FormatError>([&] {
              formats::read_torch_file(path);
            }).find("TorchScript"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
