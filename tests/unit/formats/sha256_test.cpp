#include "lockstep/formats/sha256.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(formats::sha256_of(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(formats::sha256_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesAreTheSameAsTheWhole) {
  formats::Sha256 digest;
  digest.add("a");
  digest.add("");
  digest.add(std::as_bytes(std::span("bc", 2)));
  EXPECT_EQ(digest.hex(), formats::sha256_of("abc"));
}

}  // namespace
}  // namespace lockstep
