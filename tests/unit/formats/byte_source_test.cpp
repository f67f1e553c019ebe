#include "lockstep/formats/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/byte_storage.h"
#include "lockstep/formats/crc32.h"
#include "lockstep/formats/npz.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"
#include "support/messages.h"
#include "support/shortened_file.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_files.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

TEST(ByteSource, GivesPartsOfFilesAndOfMemory) {
  const testing::TempDir folder;
  const std::string text = "0123456789";
  for (const formats::ByteSource& source :
       {formats::open_source(folder.write("a", text)),
        formats::ByteSource(formats::as_bytes(text))}) {
    EXPECT_EQ(source.size(), 10U);
    EXPECT_EQ(formats::as_text(source.take(2, 3)), "234");
    EXPECT_EQ(formats::as_text(source.take(10, 0)), "");
    EXPECT_THROW(source.take(8, 3), FormatError);
    EXPECT_THROW(source.take(11, 0), FormatError);
    EXPECT_THROW(source.take(1, ~uint64_t{0}), FormatError);
  }
}

TEST(ByteSource, RefusesWhatIsNoFile) {
  const testing::TempDir folder;
  EXPECT_THROW(formats::open_source(folder.path()), IoError);
  EXPECT_THROW(formats::open_source(folder.path() / "none"), IoError);
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal<IoError>([&] {
              formats::open_source(pipe);
            }).find("not a regular file"),
            std::string::npos);
  EXPECT_THROW(formats::open_source("/dev/zero"), IoError);
}

TEST(ByteSource, AFileReplacedByARenameStaysReadable) {
  const testing::TempDir folder;
  const fs::path path = folder.write("a", "old");
  const formats::ByteSource source = formats::open_source(path);
  fs::rename(folder.write("b", "n"), path);
  EXPECT_EQ(formats::as_text(source.take(0, 3)), "old");
}

TEST(ByteStorage, ComparesItsChecksum) {
  const testing::TempDir folder;
  const std::string text(3'000'000, 'x');
  const fs::path path = folder.write("a", text);
  const auto storage = [&](uint32_t crc) {
    return formats::ByteStorage(
        formats::open_source(path), 1, text.size() - 1,
        formats::Checksum{.crc32 = crc, .name = "part"});
  };
  const uint32_t crc = formats::crc32_of(formats::as_bytes(text).subspan(1));
  const formats::ByteStorage right = storage(crc);
  EXPECT_NO_THROW(right.check());
  EXPECT_EQ(formats::as_text(right.bytes()), text.substr(1));
  const formats::ByteStorage wrong = storage(crc + 1);
  EXPECT_THROW(wrong.check(), FormatError);
  EXPECT_THROW(wrong.bytes(), FormatError);
}

formats::Value floats(size_t count) {
  formats::Value value;
  value["x"] = testing::float_tensor({static_cast<int64_t>(count)},
                                     std::vector<float>(count, 1));
  return value;
}

// A mapped file would end the process by SIGBUS.
TEST(ShortenedFiles, AreErrorsThatNameThem) {
  const testing::TempDir folder;
  const fs::path zip = folder.path() / "zip.pt";
  formats::write_torch_file(zip, floats(100'000));
  const fs::path old =
      folder.write("old.pt", testing::old_torch_file(floats(100'000)));
  const fs::path safe = folder.path() / "a.safetensors";
  formats::write_safetensors(safe,
                             {{{"x", floats(100'000).at("x").as_tensor()}}});
  for (const fs::path& path : {zip, old, safe}) {
    const formats::TensorRecord tensor =
        path == safe ? formats::read_safetensors(path).tensors[0].second
                     : formats::read_torch_file(
                           path, formats::TorchFileCheck::kStructure)
                           .at("x")
                           .as_tensor();
    fs::resize_file(path, 100'000);
    if (path == zip) {
      EXPECT_THROW(tensor.storage->check(), IoError);
    }
    for (const std::string& message :
         {refusal<IoError>([&] { tensor.storage->bytes(); }),
          refusal<IoError>([&] { formats::packed_elements(tensor); })}) {
      EXPECT_NE(message.find(path.string()), std::string::npos) << message;
      EXPECT_NE(message.find("cut off while it was read"), std::string::npos);
    }
  }
}

TEST(ShortenedFiles, NeverEndTheReader) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  formats::write_torch_file(path, floats(1'000'000));
  testing::read_while_shortened(folder, "a.pt", 200,
                                [&] { formats::read_torch_file(path); });
}

}  // namespace
}  // namespace lockstep
