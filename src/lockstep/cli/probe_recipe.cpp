#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/cli/probe_command.h"
#include "lockstep/cli/session.h"
#include "lockstep/cli/training_parts.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kWarmupSteps = 3;
constexpr int64_t kBlockSteps = 10;
constexpr double kLongEnough = 2;  // Seconds of blocks.
constexpr double kTooLong = 30;    // For more than the blocks done.
constexpr int64_t kFewestBlocks = 5;
constexpr int64_t kMostBlocks = 40;

double milliseconds(int64_t begin) {
  return 1e3 * base::seconds_between(begin, base::monotonic_ns());
}

// Times blocks of ten steps, then ends the training. Ranks agree on the number
// of blocks once: to meet after every block would cost time that a training
// does not spend.
class BlockTimer final : public engine::Callback {
 public:
  void after_step(engine::TrainLoop& loop, const Step& /*step*/) override {
    const int64_t step = loop.state().step - kWarmupSteps;
    if (step < 0 || step % kBlockSteps != 0) return;
    const engine::StepTotals totals = loop.take_totals();
    const int64_t now = base::monotonic_ns();
    const double seconds = base::seconds_between(begin_, now);
    if (step > kBlockSteps) {
      blocks_.push_back({seconds, static_cast<double>(totals.num_samples)});
      times_ = totals.times;
    } else if (step == kBlockSteps) {
      num_blocks_ = loop.world().run_on_rank0_and_broadcast(
          [&] { return blocks_for(seconds); });
    }
    begin_ = step == kBlockSteps ? base::monotonic_ns() : now;
  }
  bool poll(engine::TrainLoop& /*loop*/) override {
    return num_blocks_ == 0 ||
           static_cast<int64_t>(blocks_.size()) < num_blocks_;
  }

  // The fastest block: other processes of the machine disturb it least.
  double block_seconds() const { return fastest().seconds; }
  double samples_per_second() const {
    const Block block = fastest();
    return block.seconds > 0 ? block.samples / block.seconds : 0;
  }
  const track::StepTimes& times() const { return times_; }

 private:
  struct Block {
    double seconds = 0;
    double samples = 0;
  };

  static int64_t blocks_for(double seconds) {
    const double enough = kLongEnough / std::max(seconds, 1e-6);
    const double most = kTooLong / std::max(seconds, 1e-6);
    return std::clamp<int64_t>(
        static_cast<int64_t>(
            std::min<double>(std::max<double>(enough, kFewestBlocks), most)),
        1, kMostBlocks);
  }
  Block fastest() const {
    if (blocks_.empty()) return {};
    return *std::ranges::max_element(
        blocks_, {}, [](const Block& b) { return b.samples / b.seconds; });
  }

  std::vector<Block> blocks_;
  int64_t num_blocks_ = 0;  // 0: not agreed yet.
  track::StepTimes times_ = {};
  int64_t begin_ = 0;
};

// Weights, optimizer state and averages: about what a checkpoint holds.
int64_t checkpoint_bytes(engine::Learner& learner, const TrainConfig& config) {
  int64_t weights = 0;
  int64_t trained = 0;
  for (const at::Tensor& tensor : learner.model().parameters()) {
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    weights += bytes;
    if (tensor.requires_grad()) trained += bytes;
  }
  for (const at::Tensor& tensor : learner.model().buffers()) {
    weights += static_cast<int64_t>(tensor.nbytes());
  }
  const OptimizationConfig& optimization = config.optimization;
  int64_t states = 2;  // Adam and AdamW: two moments.
  if (optimization.optimizer == "sgd") states = optimization.momentum > 0;
  return weights + states * trained +
         static_cast<int64_t>(learner.averages().size()) * trained;
}

nlohmann::json data_of(const Session& session) {
  const Dataset& data = *session.data().train;
  if (data.size() == 0) throw ConfigError("the data set is empty");
  int64_t begin = base::monotonic_ns();
  data.get(0, 0);
  const double first = milliseconds(begin);
  begin = base::monotonic_ns();
  data.get(data.size() - 1, 0);
  return {{"samples", data.size()},
          {"first_ms", first},
          {"last_ms", milliseconds(begin)}};
}

nlohmann::json parts_of(const track::StepTimes& times) {
  const double sum = times.data + times.forward + times.backward +
                     times.exchange + times.optimizer + times.other;
  const double scale = sum > 0 ? 1 / sum : 0;
  return {{"data", scale * times.data}, {"exchange", scale * times.exchange}};
}

}  // namespace

int probe_recipe(Recipe& recipe, const std::vector<std::string>& arguments,
                 const CommandContext& context) {
  const bool speaks =
      base::find(context.environment, "RANK").value_or("0") == "0";
  const auto say = [&](const std::string& text) {
    if (speaks) context.output.out("doctor " + text + "\n");
  };
  say("stage settings");
  CommandLine line(Purpose::kTrain, recipe, context.usage);
  if (line.parse(arguments, context.environment)) {
    throw ConfigError("--help and --print_config are not measured");
  }
  const TrainConfig& config = line.config();
  say("stage data");
  Session session(recipe, line, {}, context.environment);
  nlohmann::json result = data_of(session);
  say("stage model");
  const StepLoader loader = make_step_loader(session, config);
  const LearningRatePlan plan = plan_learning_rate(session, config, loader, {});
  const auto learner = session.make_learner();
  session.fill_cache();
  say("stage steps");
  const World& world = session.world();
  engine::TrainLoop loop(*learner, loader, world, session.console(),
                         {.num_steps = INT64_MAX,
                          .schedule = plan.schedule,
                          .base_lr = plan.base_lr,
                          .cuda_graphs = {.enabled = config.cuda_graph}});
  BlockTimer timer;
  session.with_memory_report([] { return "the measured steps"; },
                             [&] { loop.run({}, {&timer}); });
  const tensor::DeviceMemory memory = tensor::device_memory(world.device());
  result.update({{"batch", engine::batch_size_text(session.batch())},
                 {"batch_size", session.batch().per_process},
                 {"workers", config.workers},
                 {"lr", lr_text(session, config, plan)},
                 {"device", tensor::device_name(world.device())},
                 {"peak_bytes", memory.peak_bytes},
                 {"total_bytes", memory.total_bytes},
                 {"peak_host_bytes",
                  tensor::device_memory(c10::Device(c10::kCPU)).peak_bytes},
                 {"checkpoint_bytes", checkpoint_bytes(*learner, config)},
                 {"keep_last", std::max<int64_t>(1, config.keep_last)},
                 {"save_dir", config.save_dir},
                 {"step_ms", 1e3 * timer.block_seconds() / kBlockSteps},
                 {"samples_per_second", timer.samples_per_second()},
                 {"parts", parts_of(timer.times())}});
  say("result " +
      result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}

}  // namespace lockstep::cli
