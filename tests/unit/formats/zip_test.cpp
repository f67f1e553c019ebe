#include <gtest/gtest.h>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/formats/byte_reader.h"
#include "lockstep/formats/zip_reader.h"
#include "lockstep/formats/zip_writer.h"
#include "support/temp_dir.h"
#include "unit/formats/sample_files.h"

namespace lockstep {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

void write_zip(const std::filesystem::path& path, const Entries& entries) {
  base::AtomicFile file(path);
  formats::ZipWriter zip(file);
  for (const auto& [name, text] : entries)
    zip.add(name, formats::as_bytes(text));
  zip.finish();
  file.commit();
}

std::string text_of(const formats::ZipReader& zip, std::string_view name) {
  return std::string(formats::as_text(zip.read(*zip.find(name))->bytes()));
}

TEST(Zip, EntriesComeBack) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.zip";
  write_zip(path, {{"x/one", "first"}, {"x/empty", ""}, {"y", "second"}});
  const formats::ZipReader zip(formats::open_source(path));
  EXPECT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(text_of(zip, "x/one"), "first");
  EXPECT_EQ(text_of(zip, "x/empty"), "");
  EXPECT_EQ(text_of(zip, "y"), "second");
  EXPECT_EQ(zip.find("x"), nullptr);
}

TEST(Zip, DataIsAlignedTo64Bytes) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.zip";
  Entries entries;
  for (size_t i = 1; i < 130; ++i) {
    entries.emplace_back(std::string(i, 'n'), std::string(i, 'd'));
  }
  write_zip(path, entries);
  const formats::ZipReader zip(formats::open_source(path));
  for (const auto& entry : zip.entries()) {
    EXPECT_EQ(entry.data_offset % 64, 0U) << entry.name;
  }
}

TEST(Zip, MoreThan65535EntriesNeedZip64) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.zip";
  Entries entries;
  for (int i = 0; i < 70'000; ++i) entries.emplace_back(std::to_string(i), "x");
  write_zip(path, entries);
  const formats::ZipReader zip(formats::open_source(path));
  EXPECT_EQ(zip.entries().size(), 70'000u);
  EXPECT_EQ(text_of(zip, "69999"), "x");
}

TEST(Zip, RefusesWhatIsCutOffFollowedOrChanged) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.zip";
  write_zip(path, {{"one", "first"}});
  const std::string whole = base::read_file(path);
  for (const std::string& bytes :
       {std::string(), whole.substr(0, 21), whole.substr(0, whole.size() - 1),
        whole + "x"}) {
    folder.write("a.zip", bytes);
    EXPECT_THROW(formats::ZipReader(formats::open_source(path)), FormatError)
        << bytes.size();
  }
  std::string changed = whole;
  changed[changed.find("first")] = 'F';
  folder.write("a.zip", changed);
  const formats::ZipReader zip(formats::open_source(path));
  EXPECT_THROW(zip.read(*zip.find("one")), FormatError);
}

TEST(Zip, RefusesTwoEntriesOfOneName) {
  const testing::TempDir folder;
  const auto path = folder.path() / "a.zip";
  write_zip(path, {{"one", "first"}, {"one", "second"}});
  EXPECT_THROW(formats::ZipReader(formats::open_source(path)), FormatError);
}

TEST(Zip, DeflatedEntriesComeBack) {
  const testing::TempDir folder;
  const std::string content(5'000, 'x');
  const formats::ZipReader zip(formats::open_source(folder.write(
      "a.zip", testing::raw_zip(
                   {{.name = "a", .content = content, .is_deflated = true}}))));
  EXPECT_EQ(text_of(zip, "a"), content);
}

TEST(Zip, RefusesImpossibleSizesBeforeTakingMemory) {
  const testing::TempDir folder;
  const auto path =
      folder.write("a.zip", testing::raw_zip({{.name = "a",
                                               .content = "abc",
                                               .is_deflated = true,
                                               .claimed_size = 0xffff'fffe}}));
  EXPECT_THROW(formats::ZipReader{formats::open_source(path)}, FormatError);
}

// Such archives unpack to many times what their bytes allow.
TEST(Zip, RefusesEntriesThatShareBytes) {
  const testing::TempDir folder;
  const testing::RawZipEntry inner{.name = "b", .content = "first"};
  const testing::RawZipEntry outer{.name = "a",
                                   .content = raw_zip_entry(inner)};
  testing::RawZipEntry hidden = inner;
  hidden.claimed_offset = 31;  // Behind the header and name of `outer`.
  const auto path = folder.write("a.zip", testing::raw_zip({outer, hidden}));
  EXPECT_THROW(formats::ZipReader{formats::open_source(path)}, FormatError);
  folder.write("a.zip", testing::raw_zip({outer, inner}));
  EXPECT_EQ(formats::ZipReader(formats::open_source(path)).entries().size(),
            2U);
}

}  // namespace
}  // namespace lockstep
