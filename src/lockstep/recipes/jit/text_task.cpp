#include "lockstep/recipes/jit/text_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/diffusion/ddim.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"
#include "lockstep/models/jit/text_mask.h"
#include "lockstep/text/bpe_tokenizer.h"
#include "lockstep/text/byte_tokenizer.h"

namespace lockstep::recipes {
namespace {

constexpr int64_t kTextSteps = 20;  // From noise to a sample.
constexpr std::array<int64_t, 5> kScoredTimes = {100, 300, 500, 700, 900};

at::Tensor unit_to_bytes(const at::Tensor& images) {
  return (images.clamp(0, 1) * 255).round().to(at::kByte);
}

// The coefficient a of every sample, [B, 1, 1, 1].
at::Tensor clean_parts(const at::Tensor& times, at::ScalarType dtype) {
  return (1 - times.to(dtype) / static_cast<double>(diffusion::kDiffusionTimes))
      .view({-1, 1, 1, 1});
}

// Blue comes first in images of text, red in files.
std::string png_of(const at::Tensor& pixels) {
  const at::Tensor rows = pixels.flip(0).permute({1, 2, 0}).contiguous();
  return formats::encode_png(
      {.width = static_cast<int>(rows.size(1)),
       .height = static_cast<int>(rows.size(0)),
       .pixels = {rows.const_data_ptr<uint8_t>(), rows.nbytes()}});
}

jit::JitTextConfig text_model_config(const JitShared& shared) {
  const jit::JitVariant variant = jit_variant(shared);
  return {.image_size = shared.image_size,
          .patch = variant.patch,
          .width = variant.width,
          .depth = variant.depth,
          .num_heads = variant.num_heads};
}

texts::TextShape text_shape(const JitTextSettings& settings) {
  return {.is_conditional = settings.enable_condition,
          .uses_chat_template = settings.use_chat_template};
}

void check_text_settings(const JitShared& shared,
                         const JitTextSettings& settings) {
  jit::check_jit_text_config(text_model_config(shared));
  if (settings.cond_img_size.value_or(shared.image_size) != shared.image_size) {
    throw ConfigError(fmt::format(
        "--cond_img_size {} must equal --img_size {}: prompts and texts have "
        "one size",
        *settings.cond_img_size, shared.image_size));
  }
  if (!settings.predict_clean) {
    throw ConfigError(
        "--predict_clean false: this model predicts the clean image only");
  }
}

std::shared_ptr<const jit::TextPixels> open_text_pixels(
    const JitShared& shared, const JitTextSettings& settings) {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  if (settings.tokenizer_path) {
    tokenizer = text::open_tokenizer(*settings.tokenizer_path);
  } else {
    tokenizer = std::make_shared<text::ByteTokenizer>();
  }
  return std::make_shared<jit::TextPixels>(
      tokenizer, jit::TextPixelsConfig{.image_size = shared.image_size,
                                       .max_tokens = settings.max_tokens});
}

// A condition ends with EOS, as in training; a prompt to continue does not.
jit::TextImage prompt_image(const jit::TextPixels& pixels,
                            const texts::TextShape& shape,
                            const std::string& prompt) {
  if (shape.is_conditional) {
    return pixels.draw(pixels.encode(texts::prompt_text(prompt, shape)));
  }
  const std::string beginning =
      shape.uses_chat_template ? texts::prompt_text(prompt, shape) : prompt;
  const auto ids = pixels.tokenizer().encode(beginning);
  if (std::ssize(ids) >= pixels.limit()) {
    throw ConfigError(
        fmt::format("--prompt has {} tokens: of {} none is left to continue it",
                    ids.size(), pixels.limit()));
  }
  return pixels.draw(ids);
}

}  // namespace

JitTextTask::JitTextTask(const JitSettings& settings,
                         std::shared_ptr<const jit::TextPixels> pixels,
                         texts::TextSets sets)
    : shared_(settings.shared),
      settings_(settings.text),
      shape_(text_shape(settings.text)),
      pixels_(std::move(pixels)),
      sets_(std::move(sets)),
      config_(text_model_config(settings.shared)),
      model_(std::make_shared<jit::JitText>(config_)) {
  if (!settings_.enable_condition) model_->freeze_conditions();
}

TaskInfo JitTextTask::info() const {
  const auto condition = settings_.enable_condition
                             ? jit::TextCondition::kPrompt
                             : jit::TextCondition::kNone;
  const int64_t num_pixels = shared_.image_size * shared_.image_size;
  return {
      .subject =
          fmt::format("{} on text, tokens of {}", shared_.model,
                      settings_.tokenizer_path.value_or("one byte each")),
      .memory_remedies = {"--use_amp", "--batch_size 16",
                          "--gradient_accumulation_steps 2"},
      // Texts fill about half of it.
      .normaliser_per_sample =
          0.5 * static_cast<double>(settings_.max_tokens.value_or(num_pixels)),
      .flops_per_sample = 3 * jit::jit_text_forward_flops(config_, condition)};
}

DataSets JitTextTask::data() const {
  return {.train = sets_.train, .validation = sets_.validation};
}

// All parameters, as in the original, so that checkpoints with and without
// conditions have one layout. The optimizer skips those without a gradient.
std::vector<ParameterGroup> JitTextTask::parameter_groups() const {
  return {{.name = "all", .parameters = model_->parameters()}};
}

// A noisy batch and the target of its prediction.
struct JitTextTask::Noisy {
  jit::JitTextInput input = {};
  at::Tensor clean = {};  // [B, 3, S, S], 0 to 1.
  at::Tensor mask = {};   // [B, S, S].
};

JitTextTask::Noisy JitTextTask::noisy(const Batch& batch,
                                      const at::Tensor& times,
                                      const at::Tensor& noise) const {
  const auto dtype = model_->dtype();
  Noisy made{.clean = batch[0].to(dtype) / 255, .mask = batch[1].to(dtype)};
  const at::Tensor a = clean_parts(times, dtype);
  made.input = {.images = a * made.clean + (1 - a) * noise,
                .times = times,
                .mask = batch[1]};
  if (settings_.enable_condition) {
    made.input.condition = batch[2].to(dtype) / 255;
  }
  return made;
}

int64_t JitTextTask::num_sample_tokens() const {
  return settings_.sample_tokens.value_or(pixels_->limit());
}

Loss JitTextTask::loss(const Batch& batch, SampleRandom& random) {
  const at::Tensor times = random.integers(diffusion::kDiffusionTimes, {});
  const at::Tensor noise =
      random.normal(batch[0].sizes().slice(1), model_->dtype());
  Batch shown = batch;
  shown.tensors[1] = jit::padded_mask(batch[1], num_sample_tokens(),
                                      settings_.show_padding, random);
  const Noisy made = noisy(shown, times, noise);
  const at::Tensor error =
      model_->forward(made.input).to(made.clean.scalar_type()) - made.clean;
  return {.sum = (error.square() * made.mask.unsqueeze(1)).sum(),
          .normaliser = made.mask.sum()};
}

void JitTextTask::evaluate(const Batch& batch, SampleRandom& random,
                           MetricSums& sums) {
  const at::Tensor times = random.integers(diffusion::kDiffusionTimes, {});
  const at::Tensor noise =
      random.normal(batch[0].sizes().slice(1), model_->dtype());
  const auto predict = [&](const Noisy& made) {
    return model_->forward(made.input).to(made.clean.scalar_type());
  };
  const Noisy drawn = noisy(batch, times, noise);
  const at::Tensor count = drawn.mask.sum();
  const at::Tensor error = (predict(drawn) - drawn.clean).square();
  sums.add("loss", (error * drawn.mask.unsqueeze(1)).sum({1, 2, 3}), count);
  for (const int64_t time : kScoredTimes) {
    const Noisy made = noisy(batch, torch::full_like(times, time), noise);
    const at::Tensor is_right =
        unit_to_bytes(predict(made)).eq(batch[0]).all(1) * made.mask;
    sums.add(fmt::format("token_accuracy_t{}", time), is_right.sum({1, 2}),
             count);
  }
}

std::optional<std::string> JitTextTask::prompt_of(int64_t item) const {
  if (settings_.prompt) return settings_.prompt;
  if (!settings_.enable_condition || sets_.prompts.empty()) return {};
  return sets_.prompts[static_cast<size_t>(item) % sets_.prompts.size()];
}

at::Tensor JitTextTask::sample(std::span<const int64_t> items,
                               SampleRandom& random) {
  const int64_t side = shared_.image_size;
  const at::Tensor noise = random.normal({3, side, side}, model_->dtype());
  std::vector<at::Tensor> images;
  std::vector<at::Tensor> masks;
  for (const int64_t item : items) {
    const auto prompt = prompt_of(item);
    const jit::TextImage image =
        prompt ? prompt_image(*pixels_, shape_, *prompt) : pixels_->draw({});
    images.push_back(image.pixels);
    masks.push_back(image.mask);
  }
  const at::Tensor prompts = torch::stack(images).to(noise.options()) / 255;
  jit::JitTextInput input;
  if (settings_.enable_condition) input.condition = prompts;
  const at::Tensor known = torch::stack(masks).to(noise.device());
  input.mask = jit::sampled_mask(
      known, {.num_tokens = num_sample_tokens(),
              .limit = pixels_->limit(),
              .continues_prompt = !settings_.enable_condition});
  const diffusion::Denoiser denoise = [&](const at::Tensor& x, int64_t time) {
    input.images = x;
    input.times = torch::full({x.size(0)}, time, x.options().dtype(at::kLong));
    return model_->forward(input);
  };
  diffusion::DdimConfig config{.num_steps =
                                   shared_.sample_steps.value_or(kTextSteps)};
  if (settings_.enable_condition) {
    return unit_to_bytes(diffusion::sample_ddim(denoise, noise, config));
  }
  const at::Tensor is_known = known.ne(0).unsqueeze(1);
  // Known pixels follow their own line from noise.
  config.correct = [&](const at::Tensor& x, int64_t time) {
    const double a = diffusion::clean_part(time);
    return torch::where(is_known, a * prompts + (1 - a) * noise, x);
  };
  const at::Tensor made = diffusion::sample_ddim(denoise, noise, config);
  return unit_to_bytes(torch::where(is_known, prompts, made));
}

std::vector<OutputFile> JitTextTask::render(const at::Tensor& items) {
  const std::string folder = "texts/step{step}{weights}";
  std::vector<OutputFile> files;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::string all;
  for (int64_t i = 0; i < items.size(0); ++i) {
    const auto ids = pixels_->ids_of(items[i]);
    const std::string text = pixels_->tokenizer().decode(ids);
    const auto prompt = prompt_of(i);
    const std::string name = fmt::format("{}/generated_{}", folder, i);
    const std::string title = fmt::format("Texts/generated_{}{{weights}}", i);
    files.push_back(
        {.name = name + ".png", .bytes = png_of(items[i]), .title = title});
    if (settings_.enable_condition) {
      files.push_back(
          {.name = name + "_condition.png",
           .bytes =
               png_of(prompt_image(*pixels_, shape_, prompt.value()).pixels),
           .title = title + "_condition"});
      all += fmt::format("[{}] {}\n{}\n\n", i, *prompt, text);
    } else {
      all += fmt::format("[{}]\n{}\n\n", i, text);
    }
    nlohmann::ordered_json result;
    result["prompt"] = prompt ? nlohmann::ordered_json(*prompt)
                              : nlohmann::ordered_json(nullptr);
    result["generated_text"] = text;
    result["num_tokens"] = ids.size();
    results.push_back(std::move(result));
  }
  files.push_back(
      {.name = folder + ".txt", .bytes = all, .title = "Texts{weights}"});
  files.push_back(
      {.name = folder + "/results.json",
       .bytes = results.dump(2, ' ', /*ensure_ascii=*/false,
                             nlohmann::json::error_handler_t::replace) +
                "\n"});
  return files;
}

std::unique_ptr<Task> build_jit_text(const TrainConfig& common, Purpose purpose,
                                     JitSettings& settings) {
  JitTextSettings& own = settings.text;
  check_text_settings(settings.shared, own);
  const texts::TextShape shape = text_shape(own);
  const auto pixels = open_text_pixels(settings.shared, own);
  // Fails early for a prompt that leaves no room.
  if (own.prompt) prompt_image(*pixels, shape, *own.prompt);
  texts::TextSets sets;
  // Sampling needs data only for prompts.
  if (purpose != Purpose::kSample || (own.enable_condition && !own.prompt)) {
    sets = texts::open_text_sets(common.data_path, pixels, shape);
    // Saved in the run's settings.
    if (!own.sample_tokens) own.sample_tokens = sets.num_tokens;
  }
  return std::make_unique<JitTextTask>(settings, pixels, std::move(sets));
}

}  // namespace lockstep::recipes
