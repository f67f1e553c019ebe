#include "lockstep/sampler.h"

#include <torch/torch.h>

#include "lockstep/cli/command_line.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/engine/precision.h"
#include "lockstep/error.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/run_folder.h"
#include "lockstep/sampling.h"
#include "lockstep/tensor/autocast.h"
#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

std::vector<std::string> with_checkpoint(const std::filesystem::path& path,
                                         std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--checkpoint", path.string()});
  return flags;
}

}  // namespace

struct Sampler::Impl {
  explicit Impl(std::unique_ptr<Recipe> owned)
      : recipe(std::move(owned)), line(Purpose::kSample, *recipe) {}

  std::unique_ptr<Recipe> recipe;
  cli::CommandLine line;
  c10::Device device = at::kCPU;
  engine::Precision precision = {};
  std::unique_ptr<Task> task = {};
  Sampling* sampling = nullptr;  // The task's.
  int64_t step = 0;
};

Sampler::Sampler(std::unique_ptr<Recipe> recipe,
                 const std::filesystem::path& checkpoint,
                 const std::vector<std::string>& flags)
    : impl_(std::make_unique<Impl>(std::move(recipe))) {
  impl_->line.parse(with_checkpoint(checkpoint, flags), {});
  const TrainConfig& config = impl_->line.config();
  impl_->device = tensor::take_device(
      engine::parse_device_choice(config.device), /*local_rank=*/0, {});
  impl_->precision =
      engine::resolve_precision(config, impl_->line.options(), impl_->device);
  impl_->task = impl_->recipe->build(impl_->line.settings(), Purpose::kSample);
  impl_->sampling = ability<Sampling>(*impl_->task);
  if (impl_->sampling == nullptr) {
    throw ConfigError("the recipe " + impl_->recipe->name() + " cannot sample");
  }
  const auto model = impl_->task->model();
  model->to(impl_->device, impl_->precision.dtype);
  model->eval();
  impl_->step =
      run::load_weights(checkpoint, impl_->line.average(),
                        {.model = *model,
                         .layout = impl_->line.settings().checkpoint,
                         .averaged = engine::trained_names(*impl_->task)});
}

Sampler::~Sampler() = default;

int64_t Sampler::num_items() const { return impl_->sampling->num_items(); }

uint64_t Sampler::seed() const {
  return static_cast<uint64_t>(impl_->line.config().seed);
}

at::Tensor Sampler::sample(std::span<const int64_t> items, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const tensor::Autocast autocast(impl_->device.type(),
                                  impl_->precision.autocast);
  SampleRandom random =
      engine::item_draws({items.begin(), items.end()}, seed, impl_->device);
  return engine::sample_rows(*impl_->sampling, items, random).to(at::kCPU);
}

std::vector<OutputFile> Sampler::render(const at::Tensor& items) {
  std::vector<OutputFile> files =
      engine::render_items(*impl_->sampling, items, impl_->line.average());
  for (OutputFile& file : files) {
    file.name = engine::output_name(file.name, impl_->step, 0);
  }
  return files;
}

}  // namespace lockstep
