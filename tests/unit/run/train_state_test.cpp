#include "lockstep/engine/train_state.h"

#include <gtest/gtest.h>

#include "lockstep/run/state_tree.h"

namespace lockstep {
namespace {

TEST(TrainState, DoesNotGrowWithTheRunUnlessCheckpointsListTheLosses) {
  engine::TrainState state;
  for (int i = 0; i < 10'000; ++i) {
    state.train_losses.add(i, engine::LossHistory::Keep::kLast);
    state.val_losses.add(i, engine::LossHistory::Keep::kAll);
  }
  EXPECT_EQ(state.train_losses.values, std::vector<double>{9'999});
  EXPECT_EQ(state.train_losses.count, 10'000);
  EXPECT_LT(state.train_losses.values.capacity(), 100U);
  EXPECT_EQ(state.val_losses.values.size(), 10'000U);
  const Tree tree = run::train_state_tree(state);
  EXPECT_EQ(tree.at("train_losses").as_list().size(), 1U);
}

TEST(TrainState, CountsOfLossesSurviveACheckpoint) {
  engine::TrainState state;
  for (int i = 0; i < 5; ++i) {
    state.train_losses.add(i, engine::LossHistory::Keep::kLast);
    state.val_losses.add(i, engine::LossHistory::Keep::kAll);
  }
  const Tree tree = run::train_state_tree(state);
  engine::TrainState read = run::read_train_state(tree);
  EXPECT_EQ(read.train_losses.count, 5);
  EXPECT_EQ(read.train_losses.values, std::vector<double>{4});
  EXPECT_EQ(read.val_losses.count, 5);
  EXPECT_EQ(read.val_losses.values.size(), 5U);
  // A run that goes on from a checkpoint with whole lists drops them.
  read.val_losses.add(7, engine::LossHistory::Keep::kLast);
  EXPECT_EQ(read.val_losses.values, std::vector<double>{7});
  EXPECT_EQ(read.val_losses.count, 6);
}

TEST(TrainState, FilesWithoutCountsAreRead) {
  engine::TrainState state;
  state.val_losses.add(1, engine::LossHistory::Keep::kAll);
  state.val_losses.add(2, engine::LossHistory::Keep::kAll);
  const Tree tree = run::train_state_tree(state);
  Tree older = Tree::dict();
  for (const auto& entry : TreeView(tree).as_dict()) {
    const std::string& name = *entry.key.get_if<std::string>();
    if (!name.starts_with("num_")) older[name] = entry.value;
  }
  EXPECT_EQ(run::read_train_state(older).val_losses.count, 2);
}

}  // namespace
}  // namespace lockstep
