#include "distributed/probe_recipe.h"

#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "distributed/original_layouts.h"
#include "distributed/signal_count.h"
#include "distributed/update_watch.h"
#include "lockstep/random.h"
#include "lockstep/sampling.h"

// Outside of a namespace, so that stacks have a plain name.
[[gnu::noinline]] void wait_in_dataset(const std::string& file) {
  while (access(file.c_str(), F_OK) == 0) usleep(20'000);
}

namespace lockstep {
namespace {

constexpr int64_t kInputs = 4;
constexpr useconds_t kPauseMicroseconds = 50'000;
constexpr int kLongestPause = 240 * 20;  // In such pieces: 240 s.

// A recipe does not know its rank; its records need different names.
std::string rank_text() {
  const char* rank = std::getenv("RANK");
  if (rank == nullptr) rank = std::getenv("SLURM_PROCID");
  return rank == nullptr ? "0" : rank;
}

// Sample i: {inputs, wanted value, weight}.
class ProbeData final : public Dataset {
 public:
  // `late_folder`: of the files hang and slow; empty: never late.
  ProbeData(int64_t size, uint64_t kind, std::string late_folder)
      : size_(size), kind_(kind), late_folder_(std::move(late_folder)) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index, uint64_t seed) const override {
    if (!late_folder_.empty()) be_late();
    RandomStream draw(sample_seed(kind_, 0, index));
    RandomStream augmentation(seed);
    at::Tensor inputs = torch::empty({kInputs});
    double sum = 0;
    for (int64_t i = 0; i < kInputs; ++i) {
      const double value = 2 * draw.uniform() - 1;
      sum += value * value;
      inputs[i] = value + 0.1 * augmentation.uniform();
    }
    return {inputs, torch::tensor(static_cast<float>(sum)),
            torch::tensor(static_cast<float>(1 + index % 5))};
  }

 private:
  void be_late() const {
    wait_in_dataset(late_folder_ + "/hang");
    if (access((late_folder_ + "/slow").c_str(), F_OK) == 0) usleep(150'000);
  }

  int64_t size_;
  uint64_t kind_;
  std::string late_folder_;
};

uint64_t checksum(const torch::nn::Module& module) {
  uint64_t hash = 14695981039346656037ULL;
  for (const at::Tensor& parameter : module.parameters()) {
    const at::Tensor bytes =
        parameter.detach().contiguous().flatten().view(at::kByte);
    const auto* begin = bytes.const_data_ptr<uint8_t>();
    for (int64_t i = 0; i < bytes.numel(); ++i) {
      hash = (hash ^ begin[i]) * 1099511628211ULL;
    }
  }
  return hash;
}

bool holds(const Batch& batch, std::optional<int64_t> sample) {
  return sample && !batch.is_filler &&
         std::find(batch.indices.begin(), batch.indices.end(), *sample) !=
             batch.indices.end();
}

class ProbeNet : public torch::nn::Module {
 public:
  explicit ProbeNet(const ProbeConfig& config) {
    first = register_module("first", torch::nn::Linear(kInputs, config.hidden));
    dropout = register_module("dropout", torch::nn::Dropout(config.dropout));
    last = register_module("last", torch::nn::Linear(config.hidden, 1));
    if (config.batch_norm) {
      norm = register_module("norm", torch::nn::BatchNorm1d(config.hidden));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = norm ? norm(first(x)) : first(x);
    return last(dropout(torch::tanh(hidden))).squeeze(1);
  }

  torch::nn::Linear first{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

class ProbeTask final : public Task, public Sampling {
 public:
  explicit ProbeTask(const ProbeConfig& config)
      : config_(config), net_(std::make_shared<ProbeNet>(config)) {
    data_.train = std::make_shared<ProbeData>(
        config.train_samples, 1,
        std::to_string(config.late_rank) == rank_text() ? config.record : "");
    if (config.val_samples > 0) {
      data_.validation = std::make_shared<ProbeData>(config.val_samples, 2, "");
    }
    if (config.pause_in == "update") pause_in_update();
    if (config.flip_seed) {
      testing::watch_updates(
          {.before = [this](const auto& state) { optimizer_state_ = state; }});
    }
  }

  ~ProbeTask() override {
    if (config_.pause_in == "end") pause();
  }
  ProbeTask(const ProbeTask&) = delete;
  ProbeTask& operator=(const ProbeTask&) = delete;

  TaskInfo info() const override {
    return {.memory_remedies = {"--batch_size 1", "--dropout 0"},
            .normaliser_per_sample = config_.own_normaliser ? 3.0 : 1.0};
  }
  DataSets data() const override { return data_; }
  std::shared_ptr<torch::nn::Module> model() const override { return net_; }
  Loss loss(const Batch& batch, SampleRandom& random) override;
  void evaluate(const Batch& batch, SampleRandom& random,
                MetricSums& sums) override;

  int64_t num_items() const override { return 9; }
  at::Tensor sample(std::span<const int64_t> items,
                    SampleRandom& random) override;
  std::vector<OutputFile> render(const at::Tensor& items) override;

 private:
  void note(const std::string& phase, std::span<const int64_t> indices);
  void pause() const;
  void pause_in_update();
  void flip_by_seed();
  void run_out_of_memory() const;
  bool is_memory_short(const Batch& batch);

  ProbeConfig config_;
  DataSets data_;
  std::shared_ptr<ProbeNet> net_;
  std::map<std::string, int64_t> calls_;
  std::vector<at::Tensor> optimizer_state_;  // After the first update.
  bool is_validating_ = false;
  int64_t num_validations_ = 0;
  int64_t num_losses_ = 0;
  int64_t num_flips_ = 0;  // On all ranks.
  int64_t num_steps_ = 0;  // Whose losses are computed.
  size_t num_failures_ = 0;
};

// Past autograd, as a faulty memory does.
void ProbeTask::flip_by_seed() {
  const char* size = std::getenv("WORLD_SIZE");
  RandomStream draw(sample_seed(*config_.flip_seed, 0, num_flips_++));
  const auto below = [&](size_t end) {
    return static_cast<size_t>(draw.uniform() * static_cast<double>(end));
  };
  const auto victim =
      std::to_string(below(size == nullptr ? 1 : std::stoul(size)));
  auto tensors = net_->parameters();
  tensors.insert(tensors.end(), optimizer_state_.begin(),
                 optimizer_state_.end());
  const at::Tensor& tensor = tensors[below(tensors.size())];
  const size_t byte = below(tensor.nbytes());
  const size_t bit = below(8);
  if (victim != rank_text()) return;
  static_cast<uint8_t*>(tensor.data_ptr())[byte] ^= uint8_t(1U << bit);
  std::ofstream(config_.record + "/flips.txt", std::ios::app)
      << num_flips_ << ' ' << victim << ' '
      << (&tensor - tensors.data() < std::ssize(net_->parameters())
              ? "weight"
              : "optimizer")
      << '\n';
}

void ProbeTask::run_out_of_memory() const {
  if (config_.host_memory) torch::empty({int64_t{1} << 50});
  TORCH_CHECK_WITH(OutOfMemoryError, false,
                   "CUDA out of memory. Tried to allocate 20.00 MiB");
}

// Called once for each batch.
bool ProbeTask::is_memory_short(const Batch& batch) {
  if (!batch.ends_step()) return false;
  ++num_steps_;
  if (num_failures_ == config_.memory_steps.size() ||
      config_.memory_steps[num_failures_] != double(num_steps_)) {
    return false;
  }
  ++num_failures_;
  const bool is_meant = config_.memory_rank < 0 ||
                        std::to_string(config_.memory_rank) == rank_text();
  --num_steps_;  // It is repeated.
  return is_meant;
}

Loss ProbeTask::loss(const Batch& batch, SampleRandom& random) {
  is_validating_ = false;
  if (!batch.is_filler) note("train", batch.indices);
  if (holds(batch, config_.memory_sample)) run_out_of_memory();
  const at::Tensor noise = random.normal({kInputs}, batch[0].scalar_type());
  const at::Tensor outputs = net_->forward(batch[0] + config_.noise * noise);
  at::Tensor errors = (outputs - batch[1]).square();
  if (is_memory_short(batch)) {
    if (!config_.memory_in_backward) run_out_of_memory();
    errors.register_hook([this](const at::Tensor&) { run_out_of_memory(); });
  }
  if (holds(batch, config_.nan_sample)) errors = errors * NAN;
  if (config_.forgetful) errors = errors * (1 + 0.1 * double(++num_losses_));
  if (config_.flip_seed && !batch.is_filler) flip_by_seed();
  if (holds(batch, config_.flip_sample)) {
    // Past autograd, as a faulty memory does.
    auto* bytes = static_cast<uint8_t*>(net_->parameters()[0].data_ptr());
    bytes[5] ^= 0x10;
  }
  if (config_.loss_terms) {
    const at::Tensor is_large = (errors.detach() > 0.5).to(errors.dtype());
    return {.terms = {{.name = "weighted",
                       .weight = 0.5,
                       .sum = (errors * batch[2]).sum(),
                       .normaliser = batch[2].sum()},
                      {.name = "large",
                       .weight = 2,
                       .sum = (errors * is_large).sum(),
                       .normaliser = is_large.sum()}}};
  }
  if (!config_.own_normaliser) return {.sum = errors.sum()};
  return {.sum = (errors * batch[2]).sum(),
          .normaliser = batch[2].sum(),
          .parts = {{"plain", errors.sum()}}};
}

void ProbeTask::evaluate(const Batch& batch, SampleRandom& /*random*/,
                         MetricSums& sums) {
  if (!is_validating_) ++num_validations_;
  is_validating_ = true;
  note("validate", batch.indices);
  const auto count = static_cast<double>(batch.size());
  // Row by row, so that a row's bits do not depend on its batch.
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < batch.size(); ++i) {
    rows.push_back(net_->forward(batch[0].slice(0, i, i + 1)));
  }
  at::Tensor errors = (torch::cat(rows) - batch[1]).square();
  sums.add("error", errors, count);
  if (!config_.validation_losses.empty()) {
    const auto last = config_.validation_losses.size() - 1;
    const size_t turn =
        std::min<size_t>(static_cast<size_t>(num_validations_) - 1, last);
    errors = torch::full_like(errors, config_.validation_losses[turn]);
  }
  sums.add("loss", errors, count);
}

at::Tensor ProbeTask::sample(std::span<const int64_t> items,
                             SampleRandom& random) {
  is_validating_ = false;
  note("sample", items);
  const at::Tensor inputs =
      random.normal({kInputs}, net_->first->weight.scalar_type());
  return net_->forward(inputs).unsqueeze(1);
}

std::vector<OutputFile> ProbeTask::render(const at::Tensor& items) {
  std::ostringstream text;
  text.precision(17);
  for (int64_t i = 0; i < items.size(0); ++i) {
    text << items[i][0].item<double>() << "\n";
  }
  return {{.name = "samples/step_{step}.txt", .bytes = text.str()}};
}

void ProbeTask::note(const std::string& phase,
                     std::span<const int64_t> indices) {
  if (config_.record.empty()) return;
  const std::string rank = rank_text();
  std::ofstream(config_.record + "/pid_" + rank) << getpid();
  std::ofstream file(config_.record + "/rank_" + rank + ".txt", std::ios::app);
  file << phase << ' ' << checksum(*net_);
  for (const int64_t index : indices) file << ' ' << index;
  file << std::endl;
  if (phase == config_.pause_in && calls_[phase]++ == config_.pause_call) {
    pause();
  }
}

void ProbeTask::pause_in_update() {
  const auto is_meant = [this] {
    return calls_["update"] == config_.pause_call;
  };
  const bool is_late = std::to_string(config_.late_rank) == rank_text();
  testing::watch_updates(
      {.before =
           [this, is_meant, is_late](const auto&) {
             if (is_meant() && is_late) pause();
           },
       .after =
           [this, is_meant] {
             if (is_meant()) {
               std::ofstream(config_.record + "/updated_" + rank_text()) << 1;
             }
             ++calls_["update"];
           }});
}

void ProbeTask::pause() const {
  const std::string file = config_.record + "/paused_" + rank_text();
  if (access(file.c_str(), F_OK) == 0) return;
  // Before whoever waits for the file can send one.
  const testing::SignalCount signals;
  std::ofstream(file) << getpid();
  const std::string go = config_.record + "/go";
  for (int i = 0; i < kLongestPause && access(go.c_str(), F_OK) != 0 &&
                  signals.number() < config_.pause_signals;
       ++i) {
    usleep(kPauseMicroseconds);
  }
}

}  // namespace

void ProbeRecipe::describe(Settings& settings) {
  TrainConfig& common = settings.common;
  common.data_path = "builtin:probe";
  common.save_dir = "runs/probe";
  common.batch_size = 4;
  common.optimization.lr = 0.01;
  common.log_every = 1;
  Options& options = settings.options;
  const OptionDetails details = {.group = "Probe"};
  options.add("train_samples", config_.train_samples, "samples", details);
  options.add("val_samples", config_.val_samples, "samples", details);
  options.add("hidden", config_.hidden, "units", details);
  options.add("dropout", config_.dropout, "probability", details);
  options.add("batch_norm", config_.batch_norm, "one more layer", details);
  options.add("noise", config_.noise, "deviation", details);
  options.add("own_normaliser", config_.own_normaliser, "weights", details);
  options.add("loss_terms", config_.loss_terms, "two of them", details);
  options.add("record", config_.record, "folder of the records", details);
  options.add("pause_in", config_.pause_in, "phase", details);
  options.add("pause_call", config_.pause_call, "call of the phase", details);
  options.add("pause_signals", config_.pause_signals, "signals", details);
  options.add("late_rank", config_.late_rank, "rank", details);
  options.add("nan_sample", config_.nan_sample, "index", details);
  options.add("flip_sample", config_.flip_sample, "index", details);
  options.add("flip_seed", config_.flip_seed, "seed", details);
  options.add("memory_sample", config_.memory_sample, "index", details);
  options.add("memory_steps", config_.memory_steps, "steps", details);
  options.add("memory_rank", config_.memory_rank, "rank", details);
  options.add("memory_in_backward", config_.memory_in_backward, "place",
              details);
  options.add("host_memory", config_.host_memory, "of the machine", details);
  options.add("validation_losses", config_.validation_losses, "losses",
              details);
  options.add("forgetful", config_.forgetful, "state of its own", details);
  options.add("layout", config_.layout, "of checkpoints", details);
  settings.add_rule([this, &settings] {
    const auto layout = testing::original_layout(config_.layout);
    settings.files = layout.files;
    settings.checkpoint = layout.checkpoint;
  });
}

std::unique_ptr<Task> ProbeRecipe::build(const Settings& /*settings*/,
                                         Purpose /*purpose*/) {
  return std::make_unique<ProbeTask>(config_);
}

}  // namespace lockstep
