#include "lockstep/nodes/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::nodes {

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* result =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           digest.data(), &size);
  LOCKSTEP_CHECK(result != nullptr && size == kDigestBytes, "HMAC-SHA256");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

bool is_same_digest(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = getrandom(bytes.data() + filled, count - filled, 0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      throw IoError("cannot draw random numbers: " + base::errno_text());
    }
  }
  return bytes;
}

std::string job_key(std::string_view secret, std::string_view job_id) {
  return hmac_sha256(secret,
                     "lockstep launchers of job " + std::string(job_id));
}

std::string job_digest(std::string_view job_id) {
  return hmac_sha256("lockstep job", job_id);
}

}  // namespace lockstep::nodes
