#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/nn/module.h>

#include <limits>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/comm/explain.h"
#include "lockstep/ddp.h"
#include "lockstep/error.h"
#include "lockstep/parallel/ddp_impl.h"
#include "lockstep/parallel/sink.h"

namespace lockstep {
namespace {

constexpr size_t kBroadcastBytes = size_t{250} * 1024 * 1024;

int64_t cap_bytes(const DdpConfig& config) {
  constexpr double kMebibyte = 1024 * 1024;
  return config.bucket_cap_mb
             ? static_cast<int64_t>(*config.bucket_cap_mb * kMebibyte)
             : c10d::kDefaultBucketBytesCap;
}

void check_config(const DdpConfig& config) {
  if (config.bucket_cap_mb && !(*config.bucket_cap_mb > 0)) {
    throw ConfigError(fmt::format("bucket_cap_mb is {}; it must be above 0",
                                  *config.bucket_cap_mb));
  }
  if (config.gradient_hook && config.compression != Compression::kNone) {
    throw ConfigError(
        "both compression and gradient_hook are set; choose one of them");
  }
}

void check_parameters(const parallel::TrainedParameters& parameters) {
  if (parameters.tensors.empty()) {
    throw ConfigError(
        "no parameter of the module requires a gradient: there is nothing to "
        "average, use the module without DistributedDataParallel");
  }
  const c10::Device first = parameters.tensors[0].device();
  for (size_t i = 0; i < parameters.tensors.size(); ++i) {
    const c10::Device device = parameters.tensors[i].device();
    if (device == first) continue;
    throw ConfigError(fmt::format(
        "parameter {} is on {} but {} is on {}: move the whole module to "
        "world.device() before wrapping it",
        parameters.names[i], device.str(), parameters.names[0], first.str()));
  }
}

// The settings that decide which collectives a rank calls.
std::string describe_config(const DdpConfig& config) {
  return fmt::format(
      "DdpConfig broadcast_buffers={} find_unused_parameters={} "
      "static_graph={} bucket_cap_bytes={} compression={}\n",
      config.broadcast_buffers, config.find_unused_parameters,
      config.static_graph, cap_bytes(config),
      static_cast<int>(config.compression));
}

// Empty when equal.
std::string first_difference(const std::string& of_rank0,
                             const std::string& own) {
  const auto theirs = base::split(of_rank0, '\n');
  const auto mine = base::split(own, '\n');
  for (size_t i = 0; i < std::max(theirs.size(), mine.size()); ++i) {
    const std::string a = i < theirs.size() ? theirs[i] : "";
    const std::string b = i < mine.size() ? mine[i] : "";
    if (a == b) continue;
    return fmt::format("'{}' there and '{}' on rank 0",
                       b.empty() ? "nothing" : b, a.empty() ? "nothing" : a);
  }
  return "";
}

class BucketHook final : public c10d::CommHookInterface {
 public:
  explicit BucketHook(GradientHook hook) : hook_(std::move(hook)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(
      c10d::GradBucket& bucket) override {
    return hook_(bucket);
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  GradientHook hook_;
};

std::unordered_map<size_t, std::string> names_by_position(
    const std::vector<std::string>& names) {
  std::unordered_map<size_t, std::string> result;
  for (size_t i = 0; i < names.size(); ++i) result.emplace(i, names[i]);
  return result;
}

}  // namespace

DdpEngine::Impl::Impl(std::shared_ptr<torch::nn::Module> module, World world,
                      DdpConfig config)
    : module_(std::move(module)),
      world_(std::move(world)),
      config_(std::move(config)),
      state_(std::make_shared<DdpState>()) {
  if (module_ == nullptr) {
    throw ConfigError("DistributedDataParallel got no module (a null pointer)");
  }
  check_config(config_);
  parallel::check_names(*module_, config_.ignored);
  const parallel::TrainedParameters parameters =
      parallel::trained_parameters(*module_, config_.ignored);
  check_parameters(parameters);
  state_->group = world_.group();
  state_->device = parameters.tensors[0].device();
  state_->names = parameters.names;
  state_->buffers = parallel::all_buffers(*module_, config_.ignored);
  state_->on_backward = std::make_shared<std::function<void()>>([] {});
  agree_with_other_ranks();
  build_reducer(parameters);
  register_hook();
}

// Every rank compares with rank 0 and every rank learns the outcome: none waits
// for one that has refused.
void DdpEngine::Impl::agree_with_other_ranks() {
  if (world_.size() == 1) return;
  const std::string own =
      describe_config(config_) + parallel::describe(*module_, config_.ignored);
  const std::string of_rank0 = world_.broadcast_text(own);
  const auto differences = world_.gather_texts(first_difference(of_rank0, own));
  for (size_t rank = 0; rank < differences.size(); ++rank) {
    if (differences[rank].empty()) continue;
    throw ConfigError(
        fmt::format("rank {} has a different module or DdpConfig than rank 0: "
                    "{}. Build the "
                    "same module with the same settings on every rank",
                    rank, differences[rank]));
  }
  sync_module(/*from=*/0);
}

void DdpEngine::Impl::sync_module(int from) {
  std::vector<at::Tensor> tensors =
      parallel::all_parameters(*module_, config_.ignored);
  if (config_.broadcast_buffers) {
    const auto buffers = parallel::all_buffers(*module_, config_.ignored);
    tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  }
  broadcast_all(tensors, from);
}

void DdpEngine::Impl::broadcast_all(const std::vector<at::Tensor>& tensors,
                                    int from) {
  try {
    c10d::broadcast_coalesced(state_->group, tensors, kBroadcastBytes, from);
  } catch (const std::exception& error) {
    comm::throw_explained(
        error, fmt::format("broadcasting rank {}'s values to rank {}", from,
                           world_.rank()));
  }
}

BucketLayout DdpEngine::Impl::first_layout(
    const parallel::TrainedParameters& parameters) const {
  if (config_.bucket_layout) {
    parallel::check_layout(*config_.bucket_layout, parameters.tensors.size());
    return *config_.bucket_layout;
  }
  const auto cap = static_cast<size_t>(cap_bytes(config_));
  std::vector<size_t> limits;
  if (config_.static_graph || !config_.find_unused_parameters) {
    // One bucket until the first backward has shown the order of the gradients.
    // Python's sys.maxsize.
    limits = {static_cast<size_t>(std::numeric_limits<int64_t>::max())};
  } else if (config_.bucket_cap_mb) {
    limits = {cap};
  } else {
    limits = {c10d::kDefaultFirstBucketBytes, cap};
  }
  auto [layout, sizes] = c10d::compute_bucket_assignment_by_size(
      parameters.tensors, limits, parameters.has_sparse_gradient);
  std::reverse(layout.begin(), layout.end());
  return layout;
}

void DdpEngine::Impl::build_reducer(
    const parallel::TrainedParameters& parameters) {
  const int64_t cap = cap_bytes(config_);
  const int64_t first_cap =
      config_.bucket_cap_mb ? cap : c10d::kDefaultFirstBucketBytes;
  state_->reducer = std::make_shared<c10d::Reducer>(
      parameters.tensors, first_layout(parameters), state_->group,
      parameters.has_sparse_gradient, cap, config_.find_unused_parameters,
      config_.gradient_as_bucket_view, names_by_position(parameters.names),
      first_cap, /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>{});
  // Not optional: the Reducer uses its logger without asking whether there is
  // one.
  state_->logger = std::make_shared<c10d::Logger>(state_->reducer);
  state_->reducer->set_logger(state_->logger);
  const std::vector<int> device_ids =
      state_->device.is_cuda() ? std::vector<int>{state_->device.index()}
                               : std::vector<int>{};
  state_->logger->set_construction_data_and_log(
      module_->name(), device_ids, device_ids.empty() ? -1 : device_ids[0],
      config_.broadcast_buffers, /*has_sync_bn=*/false, config_.static_graph);
  if (config_.static_graph) {
    state_->reducer->set_static_graph();
    state_->logger->set_static_graph();
  }
}

void DdpEngine::Impl::register_hook() {
  GradientHook hook = config_.gradient_hook;
  if (config_.compression != Compression::kNone) {
    hook = parallel::compress_gradients(
        state_->group,
        config_.compression == Compression::kFp16 ? at::kHalf : at::kBFloat16);
  }
  if (!hook && world_.size() == 1) hook = parallel::keep_gradients();
  if (!hook) return;
  state_->reducer->register_comm_hook(
      std::make_unique<BucketHook>(std::move(hook)));
}

void DdpEngine::Impl::before_forward() {
  world_.status().set_phase(base::Phase::kForward);
  note_memory();
  const bool grad_enabled = at::GradMode::is_enabled();
  try {
    if (grad_enabled && state_->sync_gradients) {
      state_->logger->set_runtime_stats_and_log();
      state_->reducer->prepare_for_forward();
    }
    notify_join();
    if (grad_enabled) state_->reducer->rebuild_buckets();
  } catch (const std::exception& error) {
    explain_reducer_error(error);
  }
  if (will_sync_buffers()) {
    const at::NoGradGuard no_grad;
    const int from = state_->join ? highest_rank_of(true) : 0;
    state_->buffers = parallel::all_buffers(*module_, config_.ignored);
    broadcast_all(state_->buffers, from);
  }
  if (state_->join) announce_gradient_sync();
}

// Reading it costs some microseconds: once a second is enough.
void DdpEngine::Impl::note_memory() {
  const int64_t now = base::monotonic_ns();
  if (base::seconds_between(state_->memory_noted_ns, now) < 1) return;
  state_->memory_noted_ns = now;
  world_.status().set_memory(tensor::host_memory_in_use(),
                             tensor::device_memory_in_use(state_->device));
}

bool DdpEngine::Impl::will_sync_buffers() const {
  return state_->sync_buffers_next && config_.broadcast_buffers &&
         !state_->buffers.empty() && world_.size() > 1;
}

void DdpEngine::Impl::after_forward(const std::vector<at::Tensor*>& outputs) {
  const bool searches = config_.find_unused_parameters && !config_.static_graph;
  if (at::GradMode::is_enabled() && state_->sync_gradients) {
    state_->sync_buffers_next = true;
    std::vector<at::Tensor> searched;
    if (searches) {
      for (const at::Tensor* output : outputs) searched.push_back(*output);
    }
    try {
      state_->reducer->prepare_for_backward(searched);
    } catch (const std::exception& error) {
      explain_reducer_error(error);
    }
  } else {
    state_->sync_buffers_next = false;
  }
  if (searches || (config_.static_graph && !state_->delayed_reduce_queued)) {
    run_sink(outputs);
  }
  if (at::GradMode::is_enabled())
    world_.status().set_phase(base::Phase::kBackward);
}

void DdpEngine::Impl::run_sink(const std::vector<at::Tensor*>& outputs) {
  if (config_.static_graph) {
    // The first backward of a static graph reduces everything at its end.
    *state_->on_backward = [weak = std::weak_ptr<DdpState>(state_)] {
      const auto state = weak.lock();
      if (state == nullptr) {
        throw ConfigError(
            "backward() of an output of a DistributedDataParallel that is "
            "gone; "
            "keep it until the backward pass is done");
      }
      if (std::exchange(state->delayed_reduce_queued, true)) return;
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = state->reducer] { reducer->delay_all_reduce(); });
    };
  }
  std::vector<at::Tensor*> tracked;
  std::vector<at::Tensor> inputs;
  for (at::Tensor* output : outputs) {
    if (!output->defined() || output->grad_fn() == nullptr) continue;
    tracked.push_back(output);
    inputs.push_back(*output);
  }
  if (inputs.empty()) return;
  const auto passed = parallel::pass_through_sink(inputs, state_->on_backward);
  for (size_t i = 0; i < tracked.size(); ++i) *tracked[i] = passed[i];
}

void DdpEngine::Impl::set_gradient_sync(bool enabled) {
  if (!enabled && config_.static_graph) {
    throw ConfigError(
        "no_sync() cannot be used with static_graph: libtorch 2.11 stops "
        "averaging gradients then (pytorch#143580); turn static_graph off");
  }
  state_->sync_gradients = enabled;
}

bool DdpEngine::Impl::gradient_sync() const { return state_->sync_gradients; }

BucketLayout DdpEngine::Impl::bucket_layout() {
  // The rebuild that the next forward would do; until then the old layout is
  // still there.
  if (state_->reducer->should_rebuild_buckets()) {
    state_->reducer->rebuild_buckets();
  }
  return state_->logger->get_per_bucket_variable_indices();
}

// The Reducer counts parameters; a user knows names.
void DdpEngine::Impl::explain_reducer_error(const std::exception& error) const {
  constexpr std::string_view kMark = "did not receive grad for rank ";
  const std::string text = comm::error_text(error);
  const auto mark = text.find(kMark);
  if (text.find("finished reduction in the prior iteration") ==
          std::string::npos ||
      mark == std::string::npos) {
    comm::throw_explained(
        error, fmt::format("preparing a step on rank {} of {}", world_.rank(),
                           world_.size()));
  }
  std::vector<std::string> unused;
  const auto colon = text.find(':', mark);
  for (const auto& word : base::split(text.substr(colon + 1), ' ')) {
    const auto index = base::parse_integer(base::trim(word));
    if (index && *index >= 0 &&
        static_cast<size_t>(*index) < state_->names.size()) {
      unused.push_back(state_->names[*index]);
    }
  }
  throw ConfigError(fmt::format(
      "on rank {} these parameters took no part in the previous step, so their "
      "gradients were never averaged: {}. Let every output take part in the "
      "loss, freeze the parameters (requires_grad_(false)), or set "
      "find_unused_parameters (in a recipe: has_unused_parameters of TaskInfo)",
      world_.rank(),
      unused.empty() ? text : lockstep::base::join(unused, ", ")));
}

DdpEngine::DdpEngine(std::shared_ptr<torch::nn::Module> module, World world,
                     DdpConfig config)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(world),
                                   std::move(config))) {}

DdpEngine::~DdpEngine() = default;

void DdpEngine::before_forward() { impl_->before_forward(); }

void DdpEngine::after_forward(const std::vector<at::Tensor*>& outputs) {
  impl_->after_forward(outputs);
}

void DdpEngine::set_gradient_sync(bool enabled) {
  impl_->set_gradient_sync(enabled);
}

bool DdpEngine::gradient_sync() const { return impl_->gradient_sync(); }

void DdpEngine::join(const std::function<void()>& steps,
                     const JoinConfig& config) {
  impl_->join(steps, config);
}

void DdpEngine::abandon_step() { impl_->abandon_step(); }

BucketLayout DdpEngine::bucket_layout() { return impl_->bucket_layout(); }

const World& DdpEngine::world() const { return impl_->world(); }

}  // namespace lockstep
