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

namespace lockstep {

// How a prompt and its answer become texts.
struct TextShape {
  bool is_conditional = false;  // The prompt is a image of its own.
  bool uses_chat_template = false;
};

// What the model is given of a prompt: the condition, or the beginning of the
// text.
std::string prompt_text(const std::string& prompt, const TextShape& shape);

// What it shall write: the answer alone when there is a condition. A prompt and
// its answer are otherwise lines of one text.
std::string target_text(const TextItem& item, const TextShape& shape);

// Numbered texts; safe to use from several threads at once.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual int64_t size() const = 0;
  virtual TextItem item(int64_t index) const = 0;
};

// Sample i is {uint8 [3, S, S], mask uint8 [S, S]}, and with conditions the
// prompt's image, uint8 [3, S, S]. Tokens are made anew each time.
class TextDataset final : public Dataset {
 public:
  TextDataset(std::shared_ptr<const TextSource> source,
              std::shared_ptr<const TextPixels> pixels, const TextShape& shape);

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;

  const TextSource& source() const { return *source_; }
  // Of what is to be written, with the end.
  int64_t num_tokens(int64_t index) const;

 private:
  std::shared_ptr<const TextSource> source_;
  std::shared_ptr<const TextPixels> pixels_;
  TextShape shape_;
};

struct TextSets {
  std::shared_ptr<const Dataset> train = {};
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
  // Prompts of the first validation texts, for samplings; of training texts
  // where there are no others.
  std::vector<std::string> prompts = {};
  // Length of the longest of these texts.
  int64_t num_tokens = 0;
};

constexpr int64_t kMaxShownPrompts = 64;

// The path is "builtin:text", generated sentences, or as read_text_files()
// takes it. Of a folder "train" the folder "val" beside it is for validation,
// else every 100th text. Throws ConfigError for any other path and for texts
// without a prompt where conditions are asked for.
TextSets open_text_sets(const std::string& path,
                        const std::shared_ptr<const TextPixels>& pixels,
                        const TextShape& shape);

}  // namespace lockstep
