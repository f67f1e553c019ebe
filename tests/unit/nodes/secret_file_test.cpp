#include "lockstep/nodes/secret_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/error.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::expect_in;

std::string refusal_of(const std::string& path) {
  try {
    nodes::read_secret_file(path);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SecretFile, IsReadWithoutItsLineEnd) {
  const testing::TempDir folder;
  const std::string path = folder.write("secret", "0123456789abcdef\n");
  chmod(path.c_str(), 0600);
  EXPECT_EQ(nodes::read_secret_file(path), "0123456789abcdef");
  chmod(path.c_str(), 0400);
  EXPECT_EQ(nodes::read_secret_file(path), "0123456789abcdef");
}

TEST(SecretFile, ThatOthersCanReadIsRefused) {
  const testing::TempDir folder;
  const std::string path = folder.write("secret", "0123456789abcdef\n");
  for (const mode_t mode : {0644, 0640, 0604, 0660, 0601}) {
    chmod(path.c_str(), mode);
    expect_in(refusal_of(path), "is open to other users");
  }
}

TEST(SecretFile, ThatIsMissingShortOrLongIsRefused) {
  const testing::TempDir folder;
  expect_in(refusal_of((folder.path() / "none").string()), "cannot be read");
  expect_in(refusal_of(folder.path().string()), "is not a regular file");
  const auto with = [&](const std::string& content) {
    const std::string path = folder.write("secret", content);
    chmod(path.c_str(), 0600);
    return refusal_of(path);
  };
  expect_in(with("short\n"), "is shorter than 16 bytes");
  expect_in(with(std::string(5000, 'x')), "is longer than 4096 bytes");
}

}  // namespace
}  // namespace lockstep
