#include "lockstep/sampler.h"

#include <torch/torch.h>

#include "lockstep/cli/command_line.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/engine/precision.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/run_folder.h"
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
      : recipe(std::move(owned)), line(Command::kSample, *recipe) {}

  std::unique_ptr<Recipe> recipe;
  CommandLine line;
  c10::Device device = at::kCPU;
  Precision precision = {};
  TaskInfo facts = {};
  std::shared_ptr<torch::nn::Module> model = {};
  int64_t step = 0;
};

Sampler::Sampler(std::unique_ptr<Recipe> recipe,
                 const std::filesystem::path& checkpoint,
                 const std::vector<std::string>& flags)
    : impl_(std::make_unique<Impl>(std::move(recipe))) {
  impl_->line.parse(with_checkpoint(checkpoint, flags), {});
  const TrainConfig& config = impl_->line.config();
  impl_->device =
      take_device(parse_device_choice(config.device), /*local_rank=*/0, {});
  impl_->precision =
      resolve_precision(config, impl_->line.options(), impl_->device);
  impl_->recipe->prepare_sampling(config);
  impl_->facts = impl_->recipe->facts();
  impl_->model = impl_->recipe->make_model();
  impl_->model->to(impl_->device, impl_->precision.dtype);
  impl_->model->eval();
  impl_->step =
      load_weights(checkpoint, impl_->line.average(),
                   {.model = *impl_->model,
                    .keys = impl_->facts.keys,
                    .averaged = trained_names(*impl_->recipe, *impl_->model)});
}

Sampler::~Sampler() = default;

int64_t Sampler::num_items() const { return impl_->facts.num_sample_items; }

uint64_t Sampler::seed() const {
  return static_cast<uint64_t>(impl_->line.config().seed);
}

at::Tensor Sampler::sample(std::span<const int64_t> items, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const Autocast autocast(impl_->device.type(), impl_->precision.autocast);
  SampleRandom random =
      item_draws({items.begin(), items.end()}, seed, impl_->device);
  return impl_->recipe->sample(items, random).to(at::kCPU);
}

std::vector<OutputFile> Sampler::render(const at::Tensor& items) {
  std::vector<OutputFile> files =
      render_items(*impl_->recipe, items, impl_->line.average());
  for (OutputFile& file : files) {
    file.name = file_name(file.name, impl_->step, 0);
  }
  return files;
}

}  // namespace lockstep
