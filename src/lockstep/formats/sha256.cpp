#include "lockstep/formats/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::formats {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{
      EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  LOCKSTEP_CHECK(
      EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr) == 1,
      "SHA-256 does not start");
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(
      EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size()) == 1,
      "SHA-256 failed");
}

void Sha256::add(std::string_view bytes) {
  add(std::as_bytes(std::span(bytes)));
}

std::string Sha256::hex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  LOCKSTEP_CHECK(
      EVP_DigestFinal_ex(context_->digest.get(), digest.data(), &size) == 1,
      "SHA-256 failed");
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4U];
    text += kDigits[digest[i] & 15U];
  }
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

}  // namespace lockstep::formats
