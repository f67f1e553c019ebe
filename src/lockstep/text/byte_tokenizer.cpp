#include "lockstep/text/byte_tokenizer.h"

#include "lockstep/text/unicode.h"

namespace lockstep::text {

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  std::string bytes;
  for (const int64_t id : ids) {
    if (id >= 0 && id < 256) bytes += static_cast<char>(id);
  }
  return lossy_utf8(bytes);
}

}  // namespace lockstep::text
