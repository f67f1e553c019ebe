// Texts as images to train on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/dataset.h"
#include "lockstep/models/jit/text_pixels.h"
#include "lockstep/text/text_files.h"

namespace lockstep::texts {

// How a prompt and its answer become texts.
struct TextShape {
  bool is_conditional = false;  // The prompt is a separate image.
  bool uses_chat_template = false;
};

// What the model is given of a prompt: the condition, or the beginning of the
// text.
std::string prompt_text(const std::string& prompt, const TextShape& shape);

// What it shall write: the answer alone when there is a condition. A prompt and
// its answer are otherwise lines of one text.
std::string target_text(const text::TextItem& item, const TextShape& shape);

// Numbered texts; safe to use from several threads at once.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual int64_t size() const = 0;
  virtual text::TextItem item(int64_t index) const = 0;
};

// Sample i is {uint8 [3, S, S], mask uint8 [S, S]}, and with conditions the
// prompt's image, uint8 [3, S, S]. Tokens are made anew each time.
class TextDataset final : public Dataset {
 public:
  TextDataset(std::shared_ptr<const TextSource> source,
              std::shared_ptr<const jit::TextPixels> pixels,
              const TextShape& shape);

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;

  const TextSource& source() const { return *source_; }
  // Length of the text to be written, with its end token.
  int64_t num_tokens(int64_t index) const;

 private:
  std::shared_ptr<const TextSource> source_;
  std::shared_ptr<const jit::TextPixels> pixels_;
  TextShape shape_;
};

struct TextSets {
  std::shared_ptr<const Dataset> train = {};
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
  // From the first validation texts, for sampling; from training texts where
  // there are no others.
  std::vector<std::string> prompts = {};
  // Length of the longest of these texts.
  int64_t num_tokens = 0;
};

constexpr int64_t kMaxShownPrompts = 64;

// The path is "builtin:text", generated sentences, or as read_text_files()
// takes it. A folder "val" beside a folder "train" is for validation, otherwise
// every 100th text. Throws ConfigError for any other path and for texts without
// a prompt where conditions are asked for.
TextSets open_text_sets(const std::string& path,
                        const std::shared_ptr<const jit::TextPixels>& pixels,
                        const TextShape& shape);

}  // namespace lockstep::texts
