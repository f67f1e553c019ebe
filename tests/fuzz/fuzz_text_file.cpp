#include "fuzz/target.h"
#include "lockstep/text/text_files.h"

// No item is empty, whatever the kind of file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* name : {"a.json", "a.jsonl", "a.txt"}) {
    lockstep::fuzz::read_or_refuse([&] {
      const auto text = lockstep::fuzz::as_text(data, size);
      for (const auto& item : lockstep::text::parse_text_file(text, name)) {
        lockstep::fuzz::require(!item.text.empty());
      }
    });
  }
  return 0;
}
