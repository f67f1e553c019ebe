#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <set>

#include "lockstep/data/image_ops.h"
#include "lockstep/datasets/episodes/episodes.h"
#include "lockstep/datasets/episodes/reach.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

const std::map<std::string, int64_t> kTargets = {{"reach the red disc", 0},
                                                 {"reach the green disc", 1},
                                                 {"reach the blue disc", 2}};

TEST(ReachTask, IsNamedByDataDir) {
  EXPECT_EQ(episodes::num_reach_episodes("builtin:reach"), 256);
  EXPECT_EQ(episodes::num_reach_episodes("builtin:reach:7"), 7);
  EXPECT_EQ(episodes::num_reach_episodes("./dataset"), std::nullopt);
  for (const char* wrong : {"builtin:reach:", "builtin:reach:0",
                            "builtin:reach:x", "builtin:reached"}) {
    EXPECT_THROW(episodes::num_reach_episodes(wrong), ConfigError) << wrong;
  }
  EXPECT_THROW(episodes::ReachTask({.num_episodes = 0}), ConfigError);
  EXPECT_THROW(episodes::ReachTask({.image_size = 4}), ConfigError);
}

TEST(ReachTask, IsTheSameEveryTime) {
  const episodes::ReachTask task({.num_episodes = 3});
  const episodes::ReachTask more({.num_episodes = 30, .num_frames = 99});
  for (int64_t episode = 0; episode < 3; ++episode) {
    EXPECT_EQ(task.sentence(episode), more.sentence(episode));
    EXPECT_EQ(task.action(episode, 5), more.action(episode, 5));
    EXPECT_EQ(task.workspace(episode, 5).pixels,
              more.workspace(episode, 5).pixels);
    EXPECT_EQ(task.wrist(episode, 5).pixels, more.wrist(episode, 5).pixels);
  }
}

TEST(ReachTask, IsAnotherOneInEachSplitSeedEpisodeAndFrame) {
  const episodes::ReachTask task({});
  const episodes::ReachTask val({.split = "val"});
  const episodes::ReachTask seeded({.seed = 1});
  std::set<std::string> images;
  const auto add = [&](const data::Image& image) {
    images.emplace(image.pixels.begin(), image.pixels.end());
  };
  for (const episodes::ReachTask* one : {&task, &val, &seeded}) {
    for (int64_t i = 0; i < 4; ++i) {
      add(one->workspace(i, 0));
      add(one->workspace(i, 1));
      add(one->wrist(i, 0));
    }
  }
  EXPECT_EQ(images.size(), 36U);
}

TEST(ReachTask, ActionsAreInRangeAndOfEveryKind) {
  const episodes::ReachTask task({});
  std::set<std::string> sentences;
  double num_closed = 0;
  formats::Action low{};
  formats::Action high{};
  for (int64_t episode = 0; episode < 256; ++episode) {
    sentences.insert(task.sentence(episode));
    for (int64_t frame = 0; frame < 8; ++frame) {
      const formats::Action action = task.action(episode, frame);
      for (size_t i = 0; i < formats::kActionSize; ++i) {
        low[i] = std::min(low[i], action[i]);
        high[i] = std::max(high[i], action[i]);
      }
      num_closed += action[6] > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(sentences.size(), 3U);
  for (size_t i = 0; i < formats::kActionSize; ++i) {
    EXPECT_GE(low[i], -1.1F) << i;
    EXPECT_LE(high[i], 1.1F) << i;
    EXPECT_LT(low[i], -0.1F) << i;
  }
  EXPECT_GT(high[0], 0.5F);
  EXPECT_GT(high[1], 0.5F);
  EXPECT_GT(num_closed / 2048, 0.3);
  EXPECT_LT(num_closed / 2048, 0.8);
}

// The disc's middle in the image lies where the action points to, at any
// size: the images, the sentence and the action tell the same.
TEST(ReachTask, ActionPointsFromTheGripperToTheNamedDisc) {
  for (const int size : {28, 42, 99, 518}) {
    const episodes::ReachTask task({.num_episodes = 4, .image_size = size});
    for (int64_t episode = 0; episode < 4; ++episode) {
      const at::Tensor wrist =
          data::to_tensor(task.wrist(episode, 0)).to(torch::kFloat);
      const int64_t target = kTargets.at(task.sentence(episode));
      const at::Tensor workspace =
          data::to_tensor(task.workspace(episode, 0)).to(torch::kFloat);
      const int64_t other = (target + 1) % 3;
      const int64_t third = (target + 2) % 3;
      const at::Tensor disc = (workspace[target] > workspace[other] + 60) &
                              (workspace[target] > workspace[third] + 60);
      const at::Tensor places =
          (disc.nonzero().to(torch::kFloat) + 0.5F) / size;
      const at::Tensor middle = places.mean(0);
      // The gripper: all channels alike and darker than the table.
      const at::Tensor grey =
          ((workspace - 95).abs() < 12).all(0).nonzero().to(torch::kFloat);
      const at::Tensor gripper = ((grey + 0.5F) / size).mean(0);
      const at::Tensor way = (middle - gripper) / 0.7F;  // y, x
      const formats::Action action = task.action(episode, 0);
      EXPECT_NEAR(way[1].item<float>(), action[0], 0.06) << size;
      EXPECT_NEAR(way[0].item<float>(), action[1], 0.06) << size;
      // The wrist's camera has the gripper in its middle.
      EXPECT_LT((wrist.slice(1, size / 2, size / 2 + 1)
                     .slice(2, size / 2, size / 2 + 1) -
                 95)
                    .abs()
                    .max()
                    .item<float>(),
                12);
    }
  }
}

TEST(ReachTask, IsReadBackFromFiles) {
  const testing::TempDir folder;
  const episodes::ReachTask task(
      {.num_episodes = 2, .num_frames = 3, .split = "val"});
  episodes::write_reach(task, folder.path());
  const auto episodes =
      episodes::read_episodes({.data_dir = folder.path(), .split = "val"});
  ASSERT_EQ(episodes.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const auto number = static_cast<int64_t>(i);
    ASSERT_EQ(episodes[i].num_frames(), 3U);
    EXPECT_EQ(episodes[i].sentence, task.sentence(number));
    for (size_t frame = 0; frame < 3; ++frame) {
      const auto at = static_cast<int64_t>(frame);
      EXPECT_EQ(episodes[i].actions[frame], task.action(number, at));
      EXPECT_EQ(episodes::load_view(episodes[i].workspace[frame], 42).pixels,
                task.workspace(number, at).pixels);
      EXPECT_EQ(episodes::load_view(episodes[i].wrist[frame], 42).pixels,
                task.wrist(number, at).pixels);
    }
  }
  EXPECT_THROW(episodes::write_reach(task, folder.path()), IoError);
}

struct Frames {
  at::Tensor inputs;
  at::Tensor actions;
};

// Images of both cameras and, as three more channels, the target.
Frames frames_of(const episodes::ReachTask& task) {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> actions;
  const episodes::ReachConfig& config = task.config();
  for (int64_t episode = 0; episode < config.num_episodes; ++episode) {
    at::Tensor target = torch::zeros({3, config.image_size, config.image_size});
    target[kTargets.at(task.sentence(episode))].fill_(1);
    for (int64_t frame = 0; frame < config.num_frames; ++frame) {
      inputs.push_back(torch::cat(
          {data::to_tensor(task.workspace(episode, frame)) / 255.0,
           data::to_tensor(task.wrist(episode, frame)) / 255.0, target}));
      const formats::Action action = task.action(episode, frame);
      actions.push_back(torch::tensor(at::ArrayRef<float>(action)));
    }
  }
  return {.inputs = (torch::stack(inputs) - 0.5) * 3,
          .actions = torch::stack(actions)};
}

TEST(ReachTask, IsLearnedByASmallNet) {
  namespace nn = torch::nn;
  const Frames train = frames_of(episodes::ReachTask({.image_size = 28}));
  const Frames val = frames_of(episodes::ReachTask(
      {.num_episodes = 32, .image_size = 28, .split = "val"}));
  torch::manual_seed(0);
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(2).padding(1));
  };
  nn::Sequential net(conv(9, 24), nn::ReLU(), conv(24, 48), nn::ReLU(),
                     conv(48, 48), nn::ReLU(), nn::Flatten(),
                     nn::Linear(48 * 16, 96), nn::ReLU(), nn::Linear(96, 7));
  torch::optim::Adam optimizer(net->parameters(), 2e-3);
  for (int step = 0; step < 400; ++step) {
    const at::Tensor chosen =
        torch::randint(train.inputs.size(0), {64}, torch::kLong);
    optimizer.zero_grad();
    torch::mse_loss(net->forward(train.inputs.index_select(0, chosen)),
                    train.actions.index_select(0, chosen))
        .backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const at::Tensor given = net->forward(val.inputs);
  const double pose_error =
      (given - val.actions).slice(1, 0, 6).abs().mean().item<double>();
  const double spread = val.actions.slice(1, 0, 6)
                            .sub(train.actions.slice(1, 0, 6).mean(0))
                            .abs()
                            .mean()
                            .item<double>();
  const double right =
      ((given.select(1, 6) > 0) == (val.actions.select(1, 6) > 0))
          .to(torch::kDouble)
          .mean()
          .item<double>();
  RecordProperty("pose_error", std::to_string(pose_error));
  EXPECT_LT(pose_error, 0.6 * spread);
  EXPECT_GT(right, 0.9);
}

}  // namespace
}  // namespace lockstep
