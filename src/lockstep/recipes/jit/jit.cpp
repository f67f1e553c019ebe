#include "lockstep/recipes/jit/jit.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/datasets/images/cifar10.h"
#include "lockstep/error.h"
#include "lockstep/text/text_files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "text";
constexpr const char* kImages = "images";

bool has_folders(const fs::path& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error)) return true;
  }
  return false;
}

// Folders of classes, and those of CIFAR-10, may have a list of the classes
// beside them. A path that is not there counts as text: opening it says what is
// wrong.
std::string kind_of_data(const std::string& path) {
  if (path.starts_with("builtin:")) {
    return path == "builtin:text" ? kText : kImages;
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) return kText;
  const bool is_text =
      holds_texts(path) && !has_folders(path) && !find_cifar10(path);
  return is_text ? kText : kImages;
}

void set_defaults(TrainConfig& common) {
  common.data_path = "data/train";
  common.save_dir = "output";
  common.epochs = 100;
  common.batch_size = 64;
  common.workers = 4;
  common.save_every_epochs = 10;
  common.optimization.lr = 1e-4;
  common.optimization.lr_schedule = "cosine";
  common.optimization.warmup_epochs = 5;
  common.optimization.weight_decay = 0.01;
  common.optimization.max_grad_norm = 1;
  common.records.wandb_project = "jit-diffusion";
}

// Those of text are set_defaults(), those of images
// JitImageRecipe::resolve_defaults().
void show_defaults_by_kind(Options& options) {
  options.show_default("lr_schedule", "cosine; images: constant");
  options.show_default("beta2", "0.999; images: 0.95");
  options.show_default("weight_decay", "0.01; images: 0");
  options.show_default("max_grad_norm", "1; images: 0");
  options.show_default("ema_decay", "none; images: 0.9999 0.9996");
  options.show_default("drop_last", "false; images: true");
  options.show_default("precision", "fp32; images: auto");
}

}  // namespace

void JitRecipe::describe(Options& options, TrainConfig& common) {
  set_defaults(common);
  show_defaults_by_kind(options);
  const std::string group = "JiT";
  const OptionDetails size = {.minimum = 1, .group = group};
  options.add("model", shared_.model,
              "the model's size B, L or H and its patches: JiT-B/4",
              {.group = group});
  options.add("img_size", shared_.image_size, "pixels of a image's side", size);
  options.add(
      "data_kind", data_kind_,
      "what the data are; auto: text for files that end in .json, "
      ".jsonl or .txt and folders of them, else images, which have defaults "
      "of their own for what is not given",
      {.choices = {"auto", kText, kImages}, .group = group});
  options.add(
      "sample_steps", shared_.sample_steps,
      "steps from noise to a sample; unset: 50 for images, 20 for "
      "text",
      {.aliases = {"num_sampling_steps"}, .minimum = 1, .group = group});
  options.add("dim", shared_.width, "width of a token; unset: by --model",
              size);
  options.add("depth", shared_.depth, "blocks; unset: by --model", size);
  options.add("heads", shared_.num_heads,
              "heads of attention; unset: by --model", size);
  options.add("blr", common.optimization.blr,
              "learning rate per 256 samples of the effective batch; replaces "
              "--lr",
              {.minimum = 0, .group = "Optimizer"});
  options.add_alias("save_every_epochs", "save_interval");
  options.add_alias("log_every", "log_interval");
  images_.describe(options, common);
  text_.describe(options, common);
}

void JitRecipe::resolve_defaults(const Options& options, TrainConfig& common) {
  if (data_kind_ == "auto") data_kind_ = kind_of_data(common.data_path);
  recipe().resolve_defaults(options, common);
}

const Recipe& JitRecipe::recipe() const {
  if (data_kind_ == kImages) return images_;
  return text_;
}

Recipe& JitRecipe::recipe() {
  if (data_kind_ == kImages) return images_;
  return text_;
}

TaskInfo JitRecipe::facts() const {
  TaskInfo facts = recipe().facts();
  facts.name = "jit";
  facts.summary = "images by class, or text as pixels, from noise: JiT";
  return facts;
}

DataSets JitRecipe::open_data(const TrainConfig& common) {
  const std::string& path = common.data_path;
  const bool is_there = path.starts_with("builtin:")
                            ? path == "builtin:text" || path == "builtin:shapes"
                            : fs::exists(path);
  if (!is_there) {
    throw ConfigError(fmt::format(
        "--data_path {}: there is no such data; usable are text "
        "(.json, .jsonl, .txt, or a folder of such files), a folder with one "
        "sub-folder of images per class, the folder of CIFAR-10, "
        "builtin:text and builtin:shapes",
        path));
  }
  return recipe().open_data(common);
}

void JitRecipe::prepare_sampling(const TrainConfig& common) {
  recipe().prepare_sampling(common);
}

std::shared_ptr<torch::nn::Module> JitRecipe::make_model() {
  return recipe().make_model();
}

std::vector<ParameterGroup> JitRecipe::parameter_groups(
    torch::nn::Module& model) {
  return recipe().parameter_groups(model);
}

Loss JitRecipe::loss(const Batch& batch, SampleRandom& random) {
  return recipe().loss(batch, random);
}

void JitRecipe::evaluate(const Batch& batch, SampleRandom& random,
                         MetricSums& sums) {
  recipe().evaluate(batch, random, sums);
}

at::Tensor JitRecipe::sample(std::span<const int64_t> items,
                             SampleRandom& random) {
  return recipe().sample(items, random);
}

std::vector<OutputFile> JitRecipe::render(const at::Tensor& items) {
  return recipe().render(items);
}

at::Tensor JitRecipe::generate(std::span<const int64_t> items,
                               SampleRandom& random) {
  return recipe().generate(items, random);
}

}  // namespace lockstep
