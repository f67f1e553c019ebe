// What all ranks of a training hold alike, as the tree of a checkpoint.
#pragma once

#include "lockstep/run/checkpoints.h"

namespace lockstep::run {

// A checkpoint without what differs from rank to rank and what needs all ranks:
// their number, generators, running sums and the layout of buckets. Not a
// collective.
Tree replica_tree(engine::Learner& learner, const engine::TrainState& state,
                  const CheckpointsConfig& config);

// Restores weights, optimizer, loss scale and averages.
void restore_replicas(const Tree& checkpoint, engine::Learner& learner,
                      const CheckpointsConfig& config);

// Throws ConfigError unless the checkpoint was trained with the same frozen
// networks.
void check_frozen(const Tree& checkpoint, const FrozenNets& frozen);

}  // namespace lockstep::run
