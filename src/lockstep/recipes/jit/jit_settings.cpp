#include "lockstep/recipes/jit/jit_settings.h"

#include <filesystem>

#include "lockstep/datasets/images/cifar10.h"
#include "lockstep/image_scoring.h"
#include "lockstep/text/text_files.h"

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "text";
constexpr const char* kImages = "images";

constexpr const char* kGroup = "JiT, images";

bool has_folders(const fs::path& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error)) return true;
  }
  return false;
}

// Folders of classes, and those of CIFAR-10, may have a list of the classes
// beside them. A path that does not exist counts as text: opening it gives the
// error.
std::string kind_of_data(const std::string& path) {
  if (path.starts_with("builtin:")) {
    return path == "builtin:text" ? kText : kImages;
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) return kText;
  const bool is_text = text::holds_texts(path) && !has_folders(path) &&
                       !images::find_cifar10(path);
  return is_text ? kText : kImages;
}

void set_jit_defaults(TrainConfig& common) {
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

// set_jit_defaults() sets those of text, use_image_defaults() those of images.
void show_defaults_by_kind(Options& options) {
  options.show_default("lr_schedule", "cosine; images: constant");
  options.show_default("beta2", "0.999; images: 0.95");
  options.show_default("weight_decay", "0.01; images: 0.0");
  options.show_default("max_grad_norm", "1.0; images: 0.0");
  options.show_default("ema_decay", "none; images: 0.9999 0.9996");
  options.show_default("drop_last", "false; images: true");
  options.show_default("precision", "fp32; images: auto");
}

CheckpointLayout text_layout() { return {.step = "", .loss = "loss"}; }

CheckpointLayout image_layout() {
  return {.model = {{.key = "model"}},
          .step = "",
          .optimizer = "optimizer",
          .scheduler = "",
          .settings = "args",
          .averages = {"model_ema1", "model_ema2"}};
}

void use_image_defaults(Settings& settings) {
  TrainConfig& common = settings.common;
  OptimizationConfig& optimization = common.optimization;
  settings.set_default("lr_schedule", optimization.lr_schedule, "constant");
  settings.set_default("beta2", optimization.beta2, 0.95);
  settings.set_default("weight_decay", optimization.weight_decay, 0.0);
  settings.set_default("max_grad_norm", optimization.max_grad_norm, 0.0);
  settings.set_default("ema_decay", optimization.ema_decay,
                       std::vector<double>{0.9999, 0.9996});
  settings.set_default("drop_last", common.drop_last, true);
  if (!settings.options.was_given("use_amp")) {
    settings.set_default("precision", common.precision, "auto");
  }
}

void describe_shared(Settings& settings, JitSettings& own) {
  Options& options = settings.options;
  const std::string group = "JiT";
  const OptionDetails size = {.minimum = 1, .group = group};
  options.add("model", own.shared.model,
              "the model's size B, L or H and its patches: JiT-B/4",
              {.group = group});
  options.add("img_size", own.shared.image_size, "pixels of an image's side",
              size);
  options.add(
      "data_kind", own.data_kind,
      "what the data are; auto: text for files that end in .json, "
      ".jsonl or .txt and folders of them, else images, which have defaults "
      "of their own for what is not given",
      {.choices = {"auto", kText, kImages}, .group = group});
  options.add(
      "sample_steps", own.shared.sample_steps,
      "steps from noise to a sample; unset: 50 for images, 20 for "
      "text",
      {.aliases = {"num_sampling_steps"}, .minimum = 1, .group = group});
  options.add("dim", own.shared.width, "width of a token; unset: by --model",
              size);
  options.add("depth", own.shared.depth, "blocks; unset: by --model", size);
  options.add("heads", own.shared.num_heads,
              "heads of attention; unset: by --model", size);
  options.add("blr", settings.common.optimization.blr,
              "learning rate per 256 samples of the effective batch; replaces "
              "--lr",
              {.minimum = 0, .group = "Optimizer"});
  options.add_alias("save_every_epochs", "save_interval");
  options.add_alias("log_every", "log_interval");
}

void describe_image_model(Options& options, JitImageSettings& own) {
  const OptionDetails share = {.minimum = 0, .maximum = 1, .group = kGroup};
  options.add("attn_dropout", own.attn_dropout,
              "dropout of attention weights, in the middle half of the blocks",
              share);
  options.add(
      "proj_dropout", own.proj_dropout,
      "dropout of attention and MLP outputs, in the middle half of the blocks",
      share);
  options.add("num_classes", own.num_classes,
              "classes of images; unset: as many as the data have",
              {.aliases = {"class_num"}, .minimum = 1, .group = kGroup});
}

void describe_image_flow(Options& options, JitImageSettings& own) {
  const OptionDetails share = {.minimum = 0, .maximum = 1, .group = kGroup};
  const OptionDetails number = {.minimum = 0, .group = kGroup};
  options.add("P_mean", own.p_mean,
              "times of training are sigmoid(P_mean + P_std * n), n normal",
              {.group = kGroup});
  options.add("P_std", own.p_std, "see P_mean", number);
  options.add("noise_scale", own.objective.noise_scale,
              "deviation of the noise; the paper's is 1 at 256 pixels and 2 at "
              "512",
              number);
  options.add("t_eps", own.objective.t_eps,
              "velocities are divided by no less than this",
              {.minimum = 1e-6, .maximum = 1, .group = kGroup});
  options.add("label_drop_prob", own.label_drop_prob,
              "probability of dropping the class of an image, for guidance",
              share);
  options.add("sampling_method", own.sampling_method,
              "steps from noise to an image; heun evaluates twice in each",
              {.choices = {"heun", "euler"}, .group = kGroup});
  options.add("cfg", own.cfg,
              "weight of guidance; 1: none. The paper's: 2.9 for B, 2.4 for L, "
              "2.2 for H",
              number);
  options.add("interval_min", own.interval.low,
              "guidance begins after this time; 0: at once", share);
  options.add("interval_max", own.interval.high,
              "guidance ends at this time; 1 is the image", share);
}

void describe_text(Options& options, JitTextSettings& own) {
  const std::string group = "JiT, text";
  options.add("tokenizer_path", own.tokenizer_path,
              "tokenizer.json of Hugging Face (byte-level BPE), or a folder "
              "that holds one; without it every byte is a token",
              {.group = group});
  options.add("max_tokens", own.max_tokens,
              "tokens of a text at most; unset: all pixels",
              {.minimum = 1, .group = group});
  options.add("enable_condition", own.enable_condition,
              "prompts are images of their own, answers are generated",
              {.group = group});
  options.add("cond_img_size", own.cond_img_size,
              "pixels of a prompt's side; must equal img_size",
              {.minimum = 1, .group = group});
  options.add("use_chat_template", own.use_chat_template,
              "prompts and answers in the words of Qwen's chats",
              {.group = group});
  options.add("predict_clean", own.predict_clean,
              "the model predicts the clean image; there is no other kind",
              {.group = group});
  options.add("prompt", own.prompt,
              "what samplings answer (with enable_condition) or continue",
              {.group = group});
  options.add("show_padding", own.show_padding,
              "how often a text is trained with padding behind it, up to "
              "sample_tokens, so that samples learn where a text ends; 0: "
              "never. Patches with any token count either way (the original: "
              "with tokens in more than half of their pixels)",
              {.minimum = 0, .maximum = 1, .group = group});
  options.add("sample_tokens", own.sample_tokens,
              "tokens of a sampled text, with its end: patches behind them are "
              "left out, as in training; unset: as many as the longest of the "
              "first texts, which the run's settings keep",
              {.minimum = 1, .group = group});
  options.add("num_texts", own.num_texts, "texts of one sampling",
              {.minimum = 1, .group = group});
}

}  // namespace

void describe_jit(Settings& settings, JitSettings& own) {
  set_jit_defaults(settings.common);
  show_defaults_by_kind(settings.options);
  settings.files.checkpoint = "checkpoint_epoch_{epoch}.pth";
  settings.files.best = "best_model.pth";
  settings.checkpoint = text_layout();
  describe_shared(settings, own);
  describe_image_model(settings.options, own.images);
  describe_image_flow(settings.options, own.images);
  describe_image_sampling(settings.options, kGroup, own.images.sampling);
  describe_score(settings);
  describe_text(settings.options, own.text);
  settings.add_rule([&settings, &own] {
    if (own.data_kind == "auto") {
      own.data_kind = kind_of_data(settings.common.data_path);
    }
    const bool is_text = own.data_kind == kText;
    settings.checkpoint = is_text ? text_layout() : image_layout();
    if (!is_text) use_image_defaults(settings);
  });
}

jit::JitVariant jit_variant(const JitShared& shared) {
  jit::JitVariant variant = jit::parse_jit_variant(shared.model);
  variant.width = shared.width.value_or(variant.width);
  variant.depth = shared.depth.value_or(variant.depth);
  variant.num_heads = shared.num_heads.value_or(variant.num_heads);
  return variant;
}

}  // namespace lockstep::recipes
