#include "fuzz/target.h"
#include "lockstep/base/utf8.h"
#include "lockstep/text/bpe_tokenizer.h"

// A tokenizer that is accepted encodes any bytes to ids of its own, and decodes
// them to text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const std::string text(lockstep::fuzz::as_text(data, size));
    const lockstep::text::BpeTokenizer tokenizer({.json = text});
    const auto ids = tokenizer.encode(text.substr(0, 500) + "abc </s>\xff");
    for (const int64_t id : ids) {
      lockstep::fuzz::require(id >= 0 && id < tokenizer.vocab_size());
    }
    lockstep::fuzz::require(lockstep::base::is_utf8(tokenizer.decode(ids)));
  });
}
