// Going on from memory after ranks died: each rank's own state lies in a file
// of its launcher, the replicated state in the memory of the ranks that live.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/recovery_page.h"
#include "lockstep/base/slot_file.h"
#include "lockstep/checkpoint.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/recovery_log.h"
#include "lockstep/engine/replica_copy.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/train_config.h"
#include "lockstep/world.h"

namespace lockstep::run {

// Where a training goes on, equal on all ranks but for `own`.
struct RecoveredState {
  Tree replicas = {};  // Weights, optimizer, averages: replica_tree().
  Tree own = {};       // own_state() of this rank, and buffers.
  engine::LastStep last_step = {};
  std::optional<BucketLayout> layout = {};
  engine::TrainState state = {};
  int64_t first_step = 0;  // Where the training began, before all recoveries.
  int source = 0;          // The rank whose replicas were taken.
  // On all ranks, where memory has run out.
  std::optional<int64_t> micro_batch = {};
};

// What a rank has to offer after others died: steps, or kNoStep.
constexpr int64_t kNoStep = -1;
struct RecoveryOffer {
  int64_t kept = kNoStep;         // Replicas in its memory.
  int64_t committed = kNoStep;    // State in its slots, or in those of the
                                  // process that it replaces.
  int64_t micro_batch = kNoStep;  // The largest that fits, if it is known.
};

struct RecoveryRoles {
  int source = 0;  // Gives the replicas.
  int teller = 0;  // Gives the training's state, of the same step.
};

// By the offers of all ranks; no value when the state is lost. A rank that was
// given replicas and lost another rank before it trained has not committed
// their step.
std::optional<RecoveryRoles> choose_roles(
    const std::vector<RecoveryOffer>& offers);

// One per process, for all recoveries.
class Recovery final : public engine::RecoveryLog {
 public:
  // No value unless the job was started with --recover memory.
  static std::optional<Recovery> from_environment(
      const base::Environment& environment, const World& world);

  void begin(engine::Learner& learner,
             const engine::TrainState& state) override;
  void before_exchange(engine::Learner& learner, int64_t step) override;
  void after_update(engine::Learner& learner, int64_t step) override;
  void commit(engine::Learner& learner,
              const engine::TrainState& state) override;
  void want_micro_batch(int64_t num_samples) override;

  // After a PeerError in the loop: copies what the learner holds of the last
  // committed step. Not a collective.
  void keep(engine::Learner& learner, const CheckpointsConfig& config);

  // After the last work: waits for the other ranks; no rank is replaced from
  // here on. Throws PeerError when one died meanwhile.
  void end() { world_.withdraw_state(); }

  // Whether this rank can go on after it lost another one: it has trained, or
  // has been started to take part.
  bool can_go_on() const;
  // World::reform(); false when ranks are gone and were not replaced.
  bool wait_for_replacement();
  // The ranks have connected anew: call recover() before training.
  bool is_pending() const {
    return has_reformed_ || !world_.ranks_without_state().empty();
  }

  // Finds the last step that all ranks completed and gives it to those that do
  // not hold it. A collective. Throws Error when no rank holds a state, and
  // PeerError when another rank dies meanwhile; then it can be called again.
  RecoveredState recover();

 private:
  struct Kept {
    int64_t step = 0;
    engine::LastStep last_step = {};
    Tree replicas = {};
  };

  // Whether a rank's slots may be lost with its node.
  enum class Slots { kOfOneNode, kOfSeveralNodes };

  Recovery(base::SlotFile slots, Slots extent, const World& world,
           const base::RecoveryWriter& page);
  bool is_on_gpu() const { return !world_.device().is_cpu(); }
  void write_own(engine::Learner& learner, int64_t step, const at::Tensor& done,
                 const at::Tensor& skipped);
  void note_replicas(engine::Learner& learner);
  Tree rank0_buffers(engine::Learner& learner) const;
  // The newest state that this rank, or the process before it, has committed.
  std::optional<engine::TrainState> committed_state() const;
  RecoveryOffer offer(const std::optional<engine::TrainState>& committed) const;
  Tree broadcast_tree(const Tree& tree, int from) const;
  Tree recover_own(int64_t step, int teller);

  base::SlotFile slots_;
  Slots extent_;
  World world_;
  base::RecoveryWriter page_;
  int64_t num_commits_ = 0;
  int64_t step_ = 0;  // The last one that was committed.
  std::optional<int64_t> first_step_ = {};
  std::optional<BucketLayout> layout_ = {};
  std::optional<Kept> kept_ = {};
  // On GPUs: of the last step that all ranks are known to have completed.
  std::unique_ptr<engine::ReplicaCopy> copy_ = {};
  engine::LastStep last_step_ = {};
  std::optional<int64_t> micro_batch_ = {};
  bool has_reformed_ = false;  // Since begin().
};

// Where recovery is only the launcher's default and the training cannot use it:
// without the launcher's means.
base::Environment recovery_environment(base::Environment environment,
                                       const TrainConfig& config);

// Throws ConfigError where a rank could not be replaced.
void check_recovery(const World& world, const TrainConfig& config,
                    const base::Environment& environment);

// Gives the learner its state back.
void restore(const RecoveredState& recovered, engine::Learner& learner,
             const CheckpointsConfig& config, const World& world);

}  // namespace lockstep::run
