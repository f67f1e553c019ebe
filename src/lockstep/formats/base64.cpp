#include "lockstep/formats/base64.h"

#include <openssl/evp.h>

namespace lockstep::formats {

std::string to_base64(std::string_view bytes) {
  // One more for the zero that OpenSSL appends.
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace lockstep::formats
