#include "lockstep/formats/npz.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/zip_writer.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_values.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

void write_entry(const std::filesystem::path& path, const std::string& bytes) {
  base::AtomicFile file(path);
  formats::ZipWriter zip(file);
  zip.add("a.npy", formats::as_bytes(bytes));
  zip.finish();
  file.commit();
}

std::string npy(const std::string& header, size_t num_bytes) {
  return "\x93NUMPY\x01\0"s + static_cast<char>(header.size()) + "\0"s +
         header + std::string(num_bytes, 'x');
}

TEST(Npz, ArraysComeBack) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.npz";
  auto mu = testing::float_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  mu.shape = {3, 2};
  mu.strides = {1, 3};
  formats::write_npz(path,
                     {{"mu", mu}, {"empty", testing::float_tensor({0}, {})}});
  const formats::NamedTensors arrays = formats::read_npz(path);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].first, "empty");
  EXPECT_EQ(arrays[1].first, "mu");
  EXPECT_EQ(arrays[1].second.shape, mu.shape);
  EXPECT_EQ(
      formats::as_text(formats::packed_elements(arrays[1].second)->bytes()),
      formats::as_text(formats::packed_elements(mu)->bytes()));
}

TEST(Npz, DamagedAndForeignArraysAreRefused) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.npz";
  const std::string rest = "'fortran_order': False, 'shape': (4,), }";
  write_entry(path, npy("{'descr': '|u1', " + rest, 4));
  EXPECT_EQ(formats::read_npz(path).size(), 1u);
  for (const std::string& bytes :
       {""s, "hello"s, npy("{'descr': '|u1', " + rest, 3),
        npy("{'descr': '|u1', " + rest, 5), npy("{'descr': '>f4', " + rest, 16),
        npy("{'descr': '|O', " + rest, 32), npy("{" + rest, 4),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (x,)}", 4),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': 4}", 4)}) {
    write_entry(path, bytes);
    EXPECT_THROW(formats::read_npz(path), FormatError) << bytes;
  }
}

TEST(Npz, TypesThatNumpyLacksAreNotWritten) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.npz";
  const auto tensor = formats::make_record(
      formats::DType::kBFloat16, {1},
      formats::ByteStorage::own(std::vector<std::byte>(2)));
  EXPECT_THROW(formats::write_npz(path, {{"a", tensor}}), FormatError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace lockstep
