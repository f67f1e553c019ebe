#include "lockstep/run/recovery.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/place_change.h"
#include "lockstep/base/recovery_page.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint/host_copy.h"
#include "lockstep/checkpoint/packed.h"
#include "lockstep/error.h"
#include "lockstep/run/own_state.h"
#include "lockstep/run/replica_tree.h"
#include "lockstep/run/state_tree.h"
#include "lockstep/tensor/device.h"

namespace lockstep::run {
namespace {

// Slots of a rank's file.
constexpr int kOwnSlot = 0;    // By step: generators, sums, buffers.
constexpr int kStateSlot = 1;  // By commit: the training's state.

constexpr const char* kDeviceGenerator = "device_generator";

std::vector<RecoveryOffer> gather_offers(const World& world,
                                         const RecoveryOffer& own) {
  std::vector<RecoveryOffer> offers;
  for (const std::string& text : world.gather_texts(
           fmt::format("{} {} {}", own.kept, own.committed, own.micro_batch))) {
    const auto words = base::split(text, ' ');
    LOCKSTEP_CHECK(words.size() == 3, "what a rank offers");
    offers.push_back({base::parse_integer(words[0]).value_or(kNoStep),
                      base::parse_integer(words[1]).value_or(kNoStep),
                      base::parse_integer(words[2]).value_or(kNoStep)});
  }
  return offers;
}

}  // namespace

std::optional<RecoveryRoles> choose_roles(
    const std::vector<RecoveryOffer>& offers) {
  const auto source =
      std::ranges::max_element(offers, {}, &RecoveryOffer::kept);
  const int64_t step = source->kept;
  const auto knows = [&](const RecoveryOffer& offer) {
    return step != kNoStep && offer.committed == step;
  };
  const auto number = [&](auto place) {
    return static_cast<int>(place - offers.begin());
  };
  // Rank 0 writes the records: what it has done after the step is done.
  auto teller = offers.begin();
  if (!knows(*teller)) teller = source;
  if (!knows(*teller)) teller = std::ranges::find_if(offers, knows);
  if (teller == offers.end()) return std::nullopt;
  return RecoveryRoles{.source = number(source), .teller = number(teller)};
}

std::optional<Recovery> Recovery::from_environment(
    const base::Environment& environment, const World& world) {
  if (!world.can_reform()) return std::nullopt;
  auto slots = base::SlotFile::from_environment(environment);
  if (!slots) return std::nullopt;
  return Recovery(*std::move(slots),
                  base::spans_nodes(environment) ? Slots::kOfSeveralNodes
                                                 : Slots::kOfOneNode,
                  world, base::RecoveryWriter::from_environment(environment));
}

Recovery::Recovery(base::SlotFile slots, Slots extent, const World& world,
                   const base::RecoveryWriter& page)
    : slots_(std::move(slots)),
      extent_(extent),
      world_(world),
      page_(page),
      num_commits_(slots_.newest(kStateSlot).value_or(0)) {}

void Recovery::begin(engine::Learner& learner,
                     const engine::TrainState& state) {
  kept_.reset();
  has_reformed_ = false;
  step_ = state.step;
  if (!first_step_) first_step_ = state.step;
  // After a recovery it holds the step already. To write it again would leave
  // nothing, should this process be killed meanwhile.
  if (!slots_.read(kOwnSlot, state.step)) {
    const at::Tensor sums = learner.running_sums();
    write_own(learner, state.step, sums, sums);
  }
  if (is_on_gpu()) {
    copy_ = std::make_unique<engine::ReplicaCopy>(learner);
    note_replicas(learner);
  }
  commit(learner, state);
  world_.offer_state();
}

void Recovery::note_replicas(engine::Learner& learner) {
  copy_->note();
  last_step_ = learner.last_step();
}

// The host does not know what a GPU has computed: after_update().
void Recovery::before_exchange(engine::Learner& learner, int64_t step) {
  if (is_on_gpu()) return;
  using Outcome = engine::Learner::Outcome;
  write_own(learner, step, learner.running_sums_after(Outcome::kDone),
            learner.running_sums_after(Outcome::kSkipped));
}

// On a GPU the host knows of a step only when it is complete. What each rank
// alone knows is written down first; when all have done so, the step can no
// longer be lost, and until then all can go back to the one before.
void Recovery::after_update(engine::Learner& learner, int64_t step) {
  if (!is_on_gpu()) return;
  world_.wait_for_device();
  const at::Tensor sums = learner.running_sums();
  write_own(learner, step, sums, sums);
  world_.all(true);
  note_replicas(learner);
}

void Recovery::write_own(engine::Learner& learner, int64_t step,
                         const at::Tensor& done, const at::Tensor& skipped) {
  Tree own = own_state(done, skipped, learner.part_names());
  if (is_on_gpu()) own[kDeviceGenerator] = device_generator_state(world_);
  if (extent_ == Slots::kOfSeveralNodes) {
    Tree all = Tree::dict();
    all["ranks"] = gather_own_states(world_, own);
    all["buffers"] = rank0_buffers(learner);
    own = std::move(all);
  } else if (world_.is_main()) {
    own["buffers"] = buffers_tree(learner.model());
  }
  slots_.write(kOwnSlot, step, checkpoint::pack(own));
}

// They differ between ranks; before each forward DDP gives all those of rank 0.
Tree Recovery::rank0_buffers(engine::Learner& learner) const {
  const Tree own = buffers_tree(learner.model());
  return TreeView(own).as_dict().empty() ? own : broadcast_tree(own, 0);
}

void Recovery::commit(engine::Learner& learner,
                      const engine::TrainState& state) {
  slots_.write(kStateSlot, ++num_commits_,
               checkpoint::pack(train_state_tree(state)));
  const bool is_first_step = state.step > step_ && !layout_;
  step_ = state.step;
  // The next forward would rebuild the buckets; from three ranks on their
  // layout changes the last bits.
  if (is_first_step) layout_ = learner.bucket_layout();
}

void Recovery::keep(engine::Learner& learner, const CheckpointsConfig& config) {
  if (is_on_gpu()) {
    // What is queued may wait for a rank that waits for this one.
    world_.let_go();
    tensor::synchronize(world_.device());
  }
  learner.abandon_step();
  // It refers to the learner.
  const std::unique_ptr<engine::ReplicaCopy> copy = std::move(copy_);
  if (kept_) return;  // From the last time: nothing was trained since.
  const auto state = committed_state();
  if (!state) return;  // Lost before the first step: there is nothing to keep.
  if (copy) copy->restore();
  Tree replicas = replica_tree(learner, *state, config);
  if (layout_) {
    replicas["lockstep"]["bucket_layout"] = bucket_layout_tree(*layout_);
  }
  // A copy: DDP's constructor gives every model rank 0's weights.
  kept_ = Kept{.step = step_,
               .last_step = copy ? last_step_ : learner.last_step(),
               .replicas = checkpoint::host_copy(
                   replicas, checkpoint::CpuTensors::kCopy)};
}

void Recovery::want_micro_batch(int64_t num_samples) {
  micro_batch_ = num_samples;
  page_.ask_all();
}

bool Recovery::can_go_on() const {
  return kept_.has_value() || !world_.ranks_without_state().empty();
}

bool Recovery::wait_for_replacement() {
  // What the steps before have left cached may be in the way of other batches.
  tensor::release_cached_memory(world_.device());
  try {
    world_.reform();
    has_reformed_ = true;
    return true;
  } catch (const PeerError&) {
    return false;
  }
}

std::optional<engine::TrainState> Recovery::committed_state() const {
  const auto newest = slots_.newest(kStateSlot);
  if (!newest) return std::nullopt;
  const auto bytes = slots_.read(kStateSlot, *newest);
  if (!bytes) return std::nullopt;
  return read_train_state(checkpoint::unpack(*bytes));
}

Tree Recovery::broadcast_tree(const Tree& tree, int from) const {
  std::string bytes;
  if (world_.rank() == from) bytes = checkpoint::pack(tree);
  const auto size = base::parse_integer(
      world_.broadcast_text(std::to_string(bytes.size()), from));
  bytes.resize(static_cast<size_t>(size.value_or(0)));
  at::Tensor memory = at::from_blob(
      bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte);
  world_.broadcast(memory, from);
  return checkpoint::unpack(bytes);
}

RecoveryOffer Recovery::offer(
    const std::optional<engine::TrainState>& committed) const {
  RecoveryOffer result{.kept = kept_ ? kept_->step : kNoStep,
                       .micro_batch = micro_batch_.value_or(kNoStep)};
  if (committed && slots_.read(kOwnSlot, committed->step)) {
    result.committed = committed->step;
  }
  return result;
}

// What this rank alone knew of a step, or the rank whose place it has.
Tree Recovery::recover_own(int64_t step, int teller) {
  auto own = slots_.read(kOwnSlot, step);
  if (extent_ == Slots::kOfOneNode) {
    if (!world_.all(own.has_value())) {
      throw Error(fmt::format(
          "a rank has lost what it alone knew of step {}; resume from the last "
          "checkpoint with --resume latest",
          step));
    }
    return checkpoint::unpack(*own);
  }
  const Tree all = broadcast_tree(
      world_.rank() == teller ? checkpoint::unpack(*own) : Tree::dict(),
      teller);
  if (!own) slots_.write(kOwnSlot, step, checkpoint::pack(all));
  Tree result = own_state_of(world_, TreeView(all).at("ranks"));
  result["buffers"] = *all.find("buffers");
  return result;
}

RecoveredState Recovery::recover() {
  const auto committed = committed_state();
  const std::vector<RecoveryOffer> offers =
      gather_offers(world_, offer(committed));
  for (const RecoveryOffer& offer : offers) {
    if (offer.micro_batch == kNoStep) continue;
    micro_batch_ =
        std::min(micro_batch_.value_or(offer.micro_batch), offer.micro_batch);
  }
  const auto roles = choose_roles(offers);
  if (!roles) {
    throw Error(
        "no rank holds the state of the training any more; resume from "
        "the last checkpoint with --resume latest");
  }
  RecoveredState result{.micro_batch = micro_batch_};
  result.source = roles->source;
  const int teller = roles->teller;
  const int64_t step = offers[static_cast<size_t>(roles->source)].kept;
  result.state = read_train_state(broadcast_tree(
      committed && world_.rank() == teller ? train_state_tree(*committed)
                                           : Tree::dict(),
      teller));
  Tree replicas = Tree::dict();
  if (world_.rank() == result.source) {
    replicas["tree"] = kept_->replicas;
    replicas["is_skipped"] = kept_->last_step.is_skipped;
    replicas["gradient_norm"] = kept_->last_step.gradient_norm;
    replicas["first_step"] = first_step_.value_or(step);
  }
  replicas = broadcast_tree(replicas, result.source);
  const TreeView sent = replicas;
  result.last_step = {.is_skipped = sent.at("is_skipped").as_bool(),
                      .gradient_norm = sent.at("gradient_norm").as_double()};
  first_step_ = sent.at("first_step").as_int();
  result.first_step = *first_step_;
  if (!kept_ || kept_->step != step) {
    kept_ = Kept{.step = step,
                 .last_step = result.last_step,
                 .replicas = *replicas.find("tree")};
  }
  result.replicas = kept_->replicas;
  if (const auto layout =
          TreeView(result.replicas).at("lockstep").find("bucket_layout")) {
    layout_ = read_bucket_layout(*layout);
  }
  result.layout = layout_;
  result.own = recover_own(step, teller);
  return result;
}

base::Environment recovery_environment(base::Environment environment,
                                       const TrainConfig& config) {
  const bool is_default = base::find(environment, base::kRecoveryVariable) ==
                          base::kRecoveryByDefault;
  if (is_default && config.optimization.shard_optimizer) {
    environment.erase(base::kSlotFileVariable);
  }
  return environment;
}

void check_recovery(const World& world, const TrainConfig& config,
                    const base::Environment& environment) {
  if (!world.device().is_cpu() && base::spans_nodes(environment)) {
    throw ConfigError(
        "--recover memory replaces ranks on GPUs of one machine only so far; "
        "leave it out (--max-restarts N with --resume latest restarts all)");
  }
  if (config.optimization.shard_optimizer) {
    throw ConfigError(
        "--recover memory: with --shard_optimizer the ranks share one copy of "
        "the model, which a rank that dies leaves half written; leave one of "
        "the two out");
  }
}

void restore(const RecoveredState& recovered, engine::Learner& learner,
             const CheckpointsConfig& config, const World& world) {
  restore_replicas(recovered.replicas, learner, config);
  const TreeView own = recovered.own;
  if (const auto generator = own.find("generator")) {
    set_cpu_generator_state(generator->as_tensor());
  }
  if (const auto generator = own.find(kDeviceGenerator)) {
    set_device_generator_state(world, generator->as_tensor());
  }
  if (world.is_main()) {
    load_module_state(learner.model(), own.at("buffers"),
                      Strictness::kWhatFits);
  }
  at::Tensor sums =
      own.at(recovered.last_step.is_skipped ? "sums_if_skipped" : "sums")
          .as_tensor()
          .clone();
  // Logging takes all but the number of steps skipped in a row.
  if (recovered.state.logged_step == recovered.state.step) {
    sums = sums.slice(0, -2);
    sums[0].zero_();
  }
  learner.set_running_sums(sums);
  learner.set_part_names(parts_of(own));
  learner.set_last_step(recovered.last_step);
}

}  // namespace lockstep::run
