#include "lockstep/formats/safetensors.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

std::string file_of(const std::string& header, size_t num_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(num_bytes, 'x');
}

TEST(Safetensors, TensorsComeBackPacked) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.safetensors";
  const formats::Value sample = testing::sample_value();
  formats::Safetensors content;
  content.metadata.emplace_back("note", "x");
  for (const char* name : {"weight", "transposed", "last", "empty"}) {
    content.tensors.emplace_back(name, sample.at("model").at(name).as_tensor());
  }
  formats::write_safetensors(path, content);
  const formats::Safetensors loaded = formats::read_safetensors(path);
  EXPECT_EQ(loaded.metadata, content.metadata);
  ASSERT_EQ(loaded.tensors.size(), 4u);
  for (const auto& [name, tensor] : loaded.tensors) {
    const formats::TensorRecord& expected =
        sample.at("model").at(name).as_tensor();
    EXPECT_EQ(tensor.shape, expected.shape);
    EXPECT_EQ(formats::as_text(formats::packed_elements(tensor)->bytes()),
              formats::as_text(formats::packed_elements(expected)->bytes()))
        << name;
  }
}

TEST(Safetensors, HeadersThatDoNotFitTheBytesAreRefused) {
  const testing::TempDir folder;
  const std::string good =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const auto path = folder.path() / "a";
  folder.write("a", file_of(good, 4));
  EXPECT_EQ(formats::read_safetensors(path).tensors.size(), 1u);
  const std::vector<std::string> bad = {
      "",
      "12345678",
      file_of(good, 3),
      file_of(good, 5),
      file_of("{", 0),
      file_of(R"({"a":1})", 0),
      file_of("null", 0),
      file_of(R"({"a":{"dtype":"U8","shape":[4.5],"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[1e30],"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}})", 1),
      file_of(R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4.5]}})", 4),
      file_of(R"({"a":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5),
      file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4),
      file_of(R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", 4),
      file_of(R"({"a":{"dtype":"F64","shape":[2305843009213693952],)"
              R"("data_offsets":[0,0]}})",
              0)};
  for (const std::string& bytes : bad) {
    folder.write("a", bytes);
    EXPECT_THROW(formats::read_safetensors(path), FormatError) << bytes;
  }
}

TEST(Safetensors, WhatTheFormatLacksIsNotWritten) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a";
  const formats::TensorRecord tensor = testing::float_tensor({1}, {1});
  EXPECT_THROW(
      formats::write_safetensors(path, {{{"a", tensor}, {"a", tensor}}, {}}),
      FormatError);
  EXPECT_THROW(formats::write_safetensors(path, {{{"\xff", tensor}}, {}}),
               FormatError);
  const auto complex = formats::make_record(
      formats::DType::kComplex128, {1},
      formats::ByteStorage::own(std::vector<std::byte>(16)));
  EXPECT_THROW(formats::write_safetensors(path, {{{"a", complex}}, {}}),
               FormatError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace lockstep
