#include "fuzz/target.h"
#include "lockstep/models/llama/llama_config.h"

// A model that is accepted can be built.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const auto config = lockstep::llama::parse_llama_config(
        lockstep::fuzz::as_text(data, size));
    lockstep::fuzz::require(config.num_heads % config.num_kv_heads == 0 &&
                            config.head_size % 2 == 0 && config.head_size > 0 &&
                            config.hidden_size > 0 && config.vocab_size > 0);
  });
}
