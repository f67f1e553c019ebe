#include "lockstep/recipes/atlas/atlas.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/data/image_ops.h"
#include "lockstep/datasets/episodes/prepare_program.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGripper = kActionSize - 1;

bool is_builtin(const std::string& data_dir) {
  return data_dir.starts_with("builtin:");
}

// Splits of a folder come from conversions: the error says how to make them.
[[noreturn]] void refuse_missing_data(const AtlasSettings& settings,
                                      const ConfigError& error) {
  throw ConfigError(fmt::format(
      "{}\ndata.use_huggingface: {} is read from data_dir after\n"
      "  hf download --repo-type dataset {}\n"
      "  lockstep prepare atlas --from lerobot --input FOLDER_OF_THE_DOWNLOAD "
      "--output {}",
      error.what(), settings.file.hf_dataset_name,
      settings.file.hf_dataset_name, settings.frames.data_dir));
}

}  // namespace

TaskInfo AtlasRecipe::facts() const {
  const fs::path log = settings_.log_file
                           ? fs::path(*settings_.log_file)
                           : fs::path(settings_.log_dir) / log_name_;
  TaskInfo facts{
      .name = "atlas",
      .summary = "actions of a robot from images and a sentence",
      .subject = fmt::format("{} and {}{}", settings_.encoders.vggt_checkpoint,
                             settings_.encoders.lang_encoder_name, data_text_),
      .files = {.epoch_checkpoint = "checkpoint_epoch_{epoch}.pt",
                // Beside the checkpoints, not among them.
                .log = settings_.save_to_file ? fs::absolute(log).string()
                                              : "train.log"},
      .keys = {.scaler = "scaler_state_dict", .best = "best_val_loss"},
      .memory_remedies = {"--batch_size 4 --gradient_accumulation_steps 2",
                          "--point_stride 2", "--encoder_precision bf16",
                          "--freeze_vggt true --freeze_lang_encoder true"},
      // token_query, and the heads of a VGGT that is trained.
      .has_unused_parameters = true,
      .shapes = BatchShapes::kDynamic,
      .sync_batch_norm = settings_.encoders.use_pointnet,
      .num_inputs = has_observation_ ? 1 : 0};
  facts.frozen = frozen_;
  return facts;
}

void AtlasRecipe::open_encoders() {
  if (encoders_ != nullptr) return;
  encoders_ = std::make_shared<Encoders>(settings_.encoders);
  settings_.model.geometry.token_size = encoders_->token_size();
  settings_.model.fusion.language_size = encoders_->language_size();
  check_atlas_config(settings_.model);
  frozen_ = encoders_->frozen();
}

bool AtlasRecipe::uses_cache() const {
  return settings_.cache_features && settings_.encoders.freeze_vggt &&
         settings_.encoders.freeze_lang_encoder;
}

GripperRange AtlasRecipe::range_of(const FrameSource& source) const {
  if (settings_.gripper_range == "zero_one") return GripperRange::kZeroOne;
  if (settings_.gripper_range == "minus_one_one") {
    return GripperRange::kMinusOneOne;
  }
  for (int64_t i = 0; i < source.num_episodes(); ++i) {
    for (int64_t frame = 0; frame < source.num_frames(i); ++frame) {
      if (source.action(i, frame)[kGripper] < 0) {
        return GripperRange::kMinusOneOne;
      }
    }
  }
  return GripperRange::kZeroOne;
}

std::shared_ptr<const Dataset> AtlasRecipe::make_set(
    std::shared_ptr<const FrameSource> source) {
  const FrameSetConfig config{
      .source = std::move(source),
      .encoders = encoders_,
      .use_wrist_camera = settings_.frames.use_wrist_camera};
  if (!uses_cache()) return std::make_shared<ImageFrames>(config);
  cached_.push_back(std::make_shared<CachedFrames>(config));
  return cached_.back();
}

FrameSources AtlasRecipe::checked_sources(const TrainConfig& common) {
  settings_.frames.data_dir = common.data_path;
  try {
    return open_frames(settings_.frames);
  } catch (const ConfigError& error) {
    if (!settings_.file.use_huggingface || is_builtin(common.data_path)) throw;
    refuse_missing_data(settings_, error);
  }
}

DataSets AtlasRecipe::open_data(const TrainConfig& common) {
  // Data before giants: what is wrong with them shows at once.
  const FrameSources sources = checked_sources(common);
  open_encoders();
  settings_.model.gripper = range_of(*sources.train);
  // A checkpoint remembers what was found.
  settings_.gripper_range = settings_.model.gripper == GripperRange::kZeroOne
                                ? "zero_one"
                                : "minus_one_one";
  cached_.clear();
  DataSets sets{.train = make_set(sources.train)};
  if (sources.validation) sets.validation = make_set(sources.validation);
  data_text_ =
      fmt::format(": {} episodes to train, {} to validate; gripper {}{}",
                  sources.train->num_episodes(),
                  sources.validation ? sources.validation->num_episodes() : 0,
                  settings_.gripper_range,
                  uses_cache() ? "; features in " + settings_.cache_dir : "");
  return sets;
}

DataSets AtlasRecipe::open_eval_data(const TrainConfig& common) {
  if (settings_.split == settings_.frames.train_split) {
    DataSets sets = open_data(common);
    sets.validation = sets.train;
    return sets;
  }
  const bool is_usual = settings_.split == "val";
  if (!is_usual) settings_.frames.val_split = settings_.split;
  DataSets sets = open_data(common);
  // Features of the frames to train on are not needed here.
  if (uses_cache() && sets.validation) cached_.erase(cached_.begin());
  return sets;
}

void AtlasRecipe::prepare_sampling(const TrainConfig& /*common*/) {
  if (settings_.workspace.empty() || settings_.instruction.empty()) {
    throw ConfigError(
        "--workspace IMAGE and --instruction TEXT are missing: what the "
        "robot sees and is told to do");
  }
  if (settings_.frames.use_wrist_camera && settings_.wrist.empty()) {
    throw ConfigError(
        "--wrist IMAGE is missing: this model was trained with two views "
        "(use_wrist_camera)");
  }
  if (settings_.gripper_range == "minus_one_one") {
    settings_.model.gripper = GripperRange::kMinusOneOne;
  }
  open_encoders();
  has_observation_ = true;
}

std::shared_ptr<torch::nn::Module> AtlasRecipe::make_model() {
  model_ = std::make_shared<AtlasModel>(settings_.model);
  if (const auto vision = encoders_->trained_vision()) {
    model_->register_module("vggt", vision);
  }
  if (const auto language = encoders_->trained_language()) {
    model_->register_module("lang_encoder", language);
  }
  return model_;
}

at::Device AtlasRecipe::device() const {
  return model_->parameters().front().device();
}

void AtlasRecipe::move_encoders() {
  if (are_encoders_moved_) return;
  encoders_->move_to(device());
  are_encoders_moved_ = true;
}

CacheProgress AtlasRecipe::fill_cache(const Shard& share) {
  if (cached_.empty()) return {};
  if (work_ != nullptr) return work_->step();
  move_encoders();
  const auto cache = std::make_shared<FeatureCache>(
      settings_.cache_dir, FeatureKeys{.images = encoders_->image_key(),
                                       .sentences = encoders_->sentence_key()});
  for (const auto& set : cached_) set->use(cache);
  work_ = std::make_unique<FeatureWork>(
      FeatureWorkConfig{.encoders = encoders_,
                        .cache = cache,
                        .sets = cached_,
                        .device = device(),
                        .batch_size = settings_.cache_batch_size},
      share);
  return work_->step();
}

AtlasInput AtlasRecipe::input_of(const Batch& batch) {
  AtlasInput input;
  if (batch.tensors.size() == kNumFeatureParts) {
    input.views = {.tokens = batch[kTokens],
                   .pose = batch[kPose],
                   .points = batch[kPoints]};
    input.language = batch[kLanguage];
    input.mask = batch[kLanguageMask];
  } else {
    move_encoders();
    input.views = encoders_->see(batch[kImages]);
    input.language = encoders_->read(batch[kIds], batch[kIdMask]);
    input.mask = batch[kIdMask];
  }
  // Features may have fewer bits than the weights, and no autocast.
  const auto type = model_->parameters().front().scalar_type();
  for (at::Tensor* part : {&input.views.tokens, &input.views.pose,
                           &input.views.points, &input.language}) {
    if (part->defined()) *part = part->to(type);
  }
  return input;
}

const at::Tensor& AtlasRecipe::actions_of(const Batch& batch) const {
  return batch.tensors.back();
}

Loss AtlasRecipe::loss(const Batch& batch, SampleRandom& /*random*/) {
  const AtlasOutput output = model_->forward(input_of(batch));
  const AtlasLosses losses = atlas_losses(
      output, actions_of(batch), settings_.loss, settings_.model.gripper);
  const at::Tensor pose = losses.pose.sum();
  const at::Tensor gripper = losses.gripper.sum();
  return {.sum = settings_.loss.pose_weight * pose +
                 settings_.loss.gripper_weight * gripper,
          .parts = {{"pose_loss", pose}, {"gripper_loss", gripper}}};
}

void AtlasRecipe::evaluate(const Batch& batch, SampleRandom& /*random*/,
                           MetricSums& sums) {
  const AtlasOutput output = model_->forward(input_of(batch));
  const at::Tensor& actions = actions_of(batch);
  const AtlasLosses losses =
      atlas_losses(output, actions, settings_.loss, settings_.model.gripper);
  const AtlasErrors errors =
      atlas_errors(output, actions, settings_.model.gripper);
  const auto add = [&](const char* name, const at::Tensor& values) {
    sums.add(name, values, static_cast<double>(batch.size()));
  };
  add("loss", settings_.loss.pose_weight * losses.pose +
                  settings_.loss.gripper_weight * losses.gripper);
  add("pose_loss", losses.pose);
  add("gripper_loss", losses.gripper);
  add("pose_l2_error", errors.pose_l2);
  add("pose_l1_error", errors.pose_l1);
  add("gripper_error", errors.gripper);
  add("gripper_accuracy", errors.gripper_is_right);
}

std::vector<OutputFile> AtlasRecipe::predict(int64_t /*input*/) {
  const int side = settings_.frames.image_size;
  std::vector<at::Tensor> views = {
      to_tensor(load_view(settings_.workspace, side))};
  if (settings_.frames.use_wrist_camera) {
    views.push_back(to_tensor(load_view(settings_.wrist, side)));
  }
  const auto ids = encoders_->tokenize(settings_.instruction);
  Batch batch{.tensors = {at::stack(views).unsqueeze(0).to(device()),
                          at::tensor(ids, at::kLong).unsqueeze(0).to(device()),
                          {},
                          {}},
              .indices = {0}};
  batch.tensors[kIdMask] = at::ones_like(batch[kIds], at::kBool);
  const AtlasOutput output = model_->forward(input_of(batch));
  const at::Tensor action =
      at::cat({output.pose, output.gripper}, 1).to(at::kFloat).cpu();
  nlohmann::ordered_json json;
  for (size_t i = 0; i < kActionSize; ++i) {
    json[std::string(kActionNames[i])] =
        action[0][static_cast<int64_t>(i)].item<float>();
  }
  return {
      {.name = "action.json", .bytes = json.dump() + "\n", .is_shown = true}};
}

bool AtlasRecipe::prepares_by_settings(
    const std::vector<std::string>& arguments) const {
  return !is_for_prepare_program(arguments);
}

std::string AtlasRecipe::prepare(const std::vector<std::string>& arguments,
                                 const ShowProgress& /*progress*/) {
  become_prepare_program(arguments);
}

}  // namespace lockstep
