#include "lockstep/datasets/texts/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "lockstep/data/dataset_views.h"
#include "lockstep/datasets/texts/generated_text.h"
#include "lockstep/error.h"

namespace lockstep::texts {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHeldOutTexts = 100;  // Every 100th.
constexpr int64_t kGeneratedTexts = 400'000;
constexpr int64_t kGeneratedValidationTexts = 2'000;

// Default system message of Qwen2.5.
constexpr const char* kSystem =
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a "
    "helpful assistant.<|im_end|>\n";

class FileTexts final : public TextSource {
 public:
  explicit FileTexts(std::vector<text::TextItem> items)
      : items_(std::move(items)) {}

  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  text::TextItem item(int64_t index) const override {
    return items_.at(static_cast<size_t>(index));
  }

 private:
  std::vector<text::TextItem> items_;
};

// With conditions the first sentence is the prompt of the whole text.
class GeneratedTexts final : public TextSource {
 public:
  GeneratedTexts(const GeneratedTextConfig& config, const TextShape& shape,
                 int64_t size)
      : config_(config), shape_(shape), size_(size) {}

  int64_t size() const override { return size_; }
  text::TextItem item(int64_t index) const override {
    text::TextItem item{.text = generated_text(config_, index)};
    if (shape_.is_conditional) {
      GeneratedTextConfig first = config_;
      first.max_bytes = 1;
      item.prompt = generated_text(first, index);
    }
    return item;
  }

 private:
  GeneratedTextConfig config_;
  TextShape shape_;
  int64_t size_;
};

std::shared_ptr<const TextSource> read_texts(const fs::path& path,
                                             const TextShape& shape) {
  std::vector<text::TextItem> items = text::read_text_files(path);
  const auto without = std::find_if(
      items.begin(), items.end(),
      [](const text::TextItem& item) { return !item.prompt.has_value(); });
  if (shape.is_conditional && without != items.end()) {
    throw ConfigError(fmt::format(
        "--enable_condition needs a prompt and an answer in every item, but "
        "item {} of {} is a text alone; leave the flag out, or use "
        "{{\"prompt\", "
        "\"answer\"}}",
        without - items.begin(), path.string()));
  }
  return std::make_shared<FileTexts>(std::move(items));
}

// data/train -> data/val, data/train_ft -> data/val_ft; empty: none.
fs::path validation_folder(fs::path path) {
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  constexpr std::string_view kTrain = "train";
  if (!name.starts_with(kTrain)) return {};
  const fs::path beside =
      path.parent_path() / ("val" + name.substr(kTrain.size()));
  return text::holds_texts(beside) ? beside : fs::path();
}

// What samplings take from the texts `indices`.
void show_texts(const TextDataset& texts, const std::vector<int64_t>& indices,
                TextSets& sets) {
  sets.prompts.clear();
  sets.num_tokens = 0;
  for (const int64_t i : indices) {
    if (std::ssize(sets.prompts) == kMaxShownPrompts) break;
    sets.prompts.push_back(texts.source().item(i).prompt.value_or(""));
    sets.num_tokens = std::max(sets.num_tokens, texts.num_tokens(i));
  }
}

TextSets held_back(const std::shared_ptr<const TextDataset>& all) {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
  for (int64_t i = 0; i < all->size(); ++i) {
    (i % kHeldOutTexts == kHeldOutTexts - 1 ? validation : train).push_back(i);
  }
  TextSets sets;
  show_texts(*all, validation.empty() ? train : validation, sets);
  sets.train = std::make_shared<data::Subset>(all, std::move(train));
  if (validation.empty()) return sets;
  sets.validation = std::make_shared<data::Subset>(all, std::move(validation));
  return sets;
}

}  // namespace

std::string prompt_text(const std::string& prompt, const TextShape& shape) {
  if (shape.uses_chat_template) {
    return fmt::format(
        "{}<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", kSystem,
        prompt);
  }
  return shape.is_conditional ? prompt : prompt + "\n";
}

std::string target_text(const text::TextItem& item, const TextShape& shape) {
  if (shape.is_conditional || !item.prompt) return item.text;
  return prompt_text(*item.prompt, shape) + item.text +
         (shape.uses_chat_template ? "<|im_end|>\n" : "");
}

TextDataset::TextDataset(std::shared_ptr<const TextSource> source,
                         std::shared_ptr<const jit::TextPixels> pixels,
                         const TextShape& shape)
    : source_(std::move(source)), pixels_(std::move(pixels)), shape_(shape) {}

Sample TextDataset::get(int64_t index, uint64_t /*seed*/) const {
  const text::TextItem item = source_->item(index);
  const jit::TextImage target =
      pixels_->draw(pixels_->encode(target_text(item, shape_)));
  if (!shape_.is_conditional) return {target.pixels, target.mask};
  const jit::TextImage condition =
      pixels_->draw(pixels_->encode(prompt_text(item.prompt.value(), shape_)));
  return {target.pixels, target.mask, condition.pixels};
}

int64_t TextDataset::num_tokens(int64_t index) const {
  return std::ssize(pixels_->encode(target_text(source_->item(index), shape_)));
}

TextSets open_text_sets(const std::string& path,
                        const std::shared_ptr<const jit::TextPixels>& pixels,
                        const TextShape& shape) {
  const auto data_of = [&](const std::shared_ptr<const TextSource>& source) {
    return std::make_shared<TextDataset>(source, pixels, shape);
  };
  std::shared_ptr<const TextSource> train;
  std::shared_ptr<const TextSource> validation;
  if (path == "builtin:text") {
    const int64_t room = pixels->limit() - 1;
    train = std::make_shared<GeneratedTexts>(
        GeneratedTextConfig{.max_bytes = room, .seed = 1}, shape,
        kGeneratedTexts);
    validation = std::make_shared<GeneratedTexts>(
        GeneratedTextConfig{.max_bytes = room, .seed = 2}, shape,
        kGeneratedValidationTexts);
  } else if (path.starts_with("builtin:")) {
    throw ConfigError(
        fmt::format("--data_path {}: there is no such set; generated texts are "
                    "builtin:text",
                    path));
  } else {
    train = read_texts(path, shape);
    const fs::path beside = validation_folder(path);
    if (beside.empty()) return held_back(data_of(train));
    validation = read_texts(beside, shape);
  }
  const auto held_out = data_of(validation);
  TextSets sets{.train = data_of(train), .validation = held_out};
  std::vector<int64_t> first(
      static_cast<size_t>(std::min(held_out->size(), kMaxShownPrompts)));
  std::iota(first.begin(), first.end(), 0);
  show_texts(*held_out, first, sets);
  return sets;
}

}  // namespace lockstep::texts
