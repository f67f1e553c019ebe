#include "lockstep/engine/loop.h"

#include <gtest/gtest.h>

#include "lockstep/engine/early_stopping_callback.h"
#include "lockstep/engine/plateau_callback.h"
#include "lockstep/engine/validation_callback.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/engine/line_task.h"

namespace lockstep {
namespace {

using Events = std::vector<std::string>;

// Notes every call; `sampling` stands for its work.
class FakeCallback final : public engine::Callback {
 public:
  FakeCallback(std::string name, Events& events)
      : name_(std::move(name)), events_(events) {}

  void begin(engine::TrainLoop& loop) override { note("begin", loop); }
  void after_step(engine::TrainLoop& loop, const Step& /*step*/) override {
    note("step", loop);
    if (loop.state().step == due_step) loop.state().due.sampling = true;
  }
  bool due(const engine::TrainLoop& loop) const override {
    return loop.state().due.sampling;
  }
  bool run(engine::TrainLoop& loop) override {
    note("run", loop);
    if (!loop.go_on("work", base::Activity::kSampling)(0, 1)) return false;
    loop.state().due.sampling = false;
    return true;
  }
  void observe(engine::TrainLoop& loop,
               const engine::Observation& /*observation*/) override {
    note("observe", loop);
  }
  bool poll(engine::TrainLoop& loop) override {
    const bool in_work = loop.state().due.sampling;
    return !(in_work ? stops_in_work : loop.state().step == stop_step);
  }
  void finish(engine::TrainLoop& loop) override { note("finish", loop); }

  int64_t due_step = -1;
  int64_t stop_step = -1;
  bool stops_in_work = false;

 private:
  void note(const char* event, const engine::TrainLoop& loop) {
    events_.push_back(name_ + " " + event + " " +
                      std::to_string(loop.state().step));
  }

  std::string name_;
  Events& events_;
};

// A training of 4 steps per epoch in a world of one.
struct Training {
  explicit Training(engine::LoopConfig config = {.num_epochs = 2})
      : loop(learner,
             StepLoader(task.data().train, world,
                        {.global_batch_size = 2,
                         .micro_batch_size = 1,
                         .workers = 0,
                         .seed = 5}),
             world, console, with_lr(std::move(config))) {}

  static engine::LoopConfig with_lr(engine::LoopConfig config) {
    config.schedule.total_updates = 100;
    config.base_lr = 1e-3;
    return config;
  }

  World world = World::from_environment({.device = DeviceChoice::kCpu}, {});
  testing::LineTask task;
  engine::Learner learner{
      task, world, {.optimization = {.optimizer = "sgd", .momentum = 0.9}}};
  std::string printed;
  track::Console console{
      {}, {.out = [this](std::string_view text) { printed += text; }}};
  engine::TrainLoop loop;
};

TEST(TrainLoop, CallsCallbacksInOrderAndFinishesInReverse) {
  Training training({.num_steps = 2});
  Events events;
  FakeCallback a("a", events);
  FakeCallback b("b", events);
  a.due_step = 1;
  training.loop.run({}, {&a, &b});
  EXPECT_EQ(events,
            (Events{"a begin 0", "b begin 0", "a step 1", "b step 1", "a run 1",
                    "a step 2", "b step 2", "b finish 2", "a finish 2"}));
  EXPECT_NE(training.task.weight(), 1);
}

TEST(TrainLoop, EndsAfterItsEpochs) {
  Training training({.num_epochs = 3});
  training.loop.run({}, {});
  EXPECT_EQ(training.loop.state().step, 12);
  EXPECT_EQ(training.loop.state().position, (DataPosition{.epoch = 3}));
  EXPECT_EQ(training.loop.take_totals().num_samples, 24);
}

TEST(TrainLoop, WorkThatAStopInterruptsStaysDueAndIsDoneFirstOnResume) {
  engine::TrainState stopped;
  {
    Training training;
    Events events;
    FakeCallback work("w", events);
    work.due_step = 3;
    work.stops_in_work = true;
    training.loop.run({}, {&work});
    stopped = training.loop.state();
    EXPECT_EQ(stopped.step, 3);
    EXPECT_TRUE(stopped.due.sampling);
  }
  Training training;
  Events events;
  FakeCallback work("w", events);
  training.loop.run(stopped, {&work});
  EXPECT_EQ(Events(events.begin(), events.begin() + 3),
            (Events{"w begin 3", "w run 3", "w step 4"}));
  EXPECT_FALSE(training.loop.state().due.sampling);
}

TEST(TrainLoop, AStopAndAResumeGiveTheSameWeights) {
  Training whole;
  whole.loop.run({}, {});
  Training parts;
  Events events;
  FakeCallback stop("s", events);
  stop.stop_step = 3;
  parts.loop.run({}, {&stop});
  EXPECT_EQ(parts.loop.state().step, 3);
  parts.loop.run(parts.loop.state(), {});
  EXPECT_EQ(parts.loop.state().step, 8);
  EXPECT_EQ(parts.task.weight(), whole.task.weight());
}

TEST(TrainLoop, LogsThatNothingIsLeftToTrain) {
  Training training({.num_steps = 5});
  training.loop.run({.step = 5}, {});
  EXPECT_EQ(training.task.weight(), 1);
  EXPECT_NE(training.printed.find("nothing to train: the run ended at step 5"),
            std::string::npos)
      << training.printed;
}

TEST(TrainLoop, ValidationIsRecordedAndObserved) {
  std::vector<track::Record> records;
  Training training({.num_steps = 5, .record = [&](track::Record record) {
                       records.push_back(std::move(record));
                     }});
  engine::ValidationCallback validation(
      training.task, {.data = training.task.data().validation,
                      .every = {.steps = 2},
                      .evaluation = {.batch_size = 3}});
  Events events;
  FakeCallback observer("o", events);
  training.loop.run({}, {&validation, &observer});
  std::vector<int64_t> steps;
  for (const track::Record& record : records) {
    steps.push_back(record.step);
    EXPECT_EQ(record.metrics.at(0).first, "val/loss");
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 5}));
  EXPECT_EQ(std::ranges::count_if(events,
                                  [](const std::string& event) {
                                    return event.starts_with("o observe");
                                  }),
            3);
  EXPECT_EQ(training.loop.state().val_losses.count, 3);
}

TEST(TrainLoop, ABestMetricThatIsNotEvaluatedIsAnError) {
  Training training({.num_steps = 2});
  engine::ValidationCallback validation(
      training.task, {.data = training.task.data().validation,
                      .every = {.steps = 2},
                      .evaluation = {.batch_size = 3},
                      .metric = "F1"});
  EXPECT_EQ(testing::refusal<ConfigError>(
                [&] { training.loop.run({}, {&validation}); }),
            "best_metric is 'F1', but evaluate() and derive() give: loss");
}

// Observes one number after each step.
class Numbers final : public engine::Callback {
 public:
  explicit Numbers(std::vector<double> values) : values_(std::move(values)) {}
  void after_step(engine::TrainLoop& loop, const Step& /*step*/) override {
    const auto number = static_cast<size_t>(loop.state().step - 1);
    loop.observe({.value = values_.at(number), .name = "number"});
  }

 private:
  std::vector<double> values_;
};

TEST(TrainLoop, StopsEarlyWithoutProgress) {
  Training training({.num_steps = 6});
  Numbers numbers({5, 4, 3.95, 4, 6, 7});
  engine::EarlyStoppingCallback early({.patience = 2, .min_delta = 0.1});
  training.loop.run({}, {&numbers, &early});
  EXPECT_EQ(training.loop.state().step, 4);
  EXPECT_TRUE(training.loop.state().stopped_early);
  EXPECT_EQ(training.loop.state().progress, 4);
  // A larger patience goes on.
  engine::EarlyStoppingCallback later({.patience = 3});
  training.loop.run(training.loop.state(), {&numbers, &later});
  EXPECT_EQ(training.loop.state().step, 5);
}

TEST(TrainLoop, LowersTheLearningRateOnAPlateau) {
  Training training({.num_steps = 4});
  Numbers numbers({5, 6, 7, 8});
  engine::PlateauCallback plateau({.factor = 0.5, .patience = 1});
  EXPECT_EQ(training.loop.next_lr(), 1e-3);
  training.loop.run({}, {&numbers, &plateau});
  EXPECT_EQ(training.loop.state().plateau->lr, 0.5);
  EXPECT_EQ(training.loop.next_lr(), 0.5e-3);
}

TEST(Interval, CountsStepsOrElseEpochs) {
  const Step middle{.begin = {.epoch = 1}, .next = {.epoch = 1, .sample = 2}};
  const Step last{.begin = {.epoch = 1, .sample = 2}, .next = {.epoch = 2}};
  EXPECT_TRUE((engine::Interval{.steps = 3, .epochs = 9}.ends_with(middle, 6)));
  EXPECT_FALSE((engine::Interval{.steps = 3, .epochs = 1}.ends_with(last, 7)));
  EXPECT_TRUE(engine::Interval{.epochs = 2}.ends_with(last, 7));
  EXPECT_FALSE(engine::Interval{.epochs = 2}.ends_with(middle, 7));
  EXPECT_FALSE(engine::Interval{.epochs = 3}.ends_with(last, 7));
  EXPECT_FALSE(engine::Interval{}.ends_with(last, 7));
  EXPECT_FALSE(engine::Interval{}.is_set());
}

}  // namespace
}  // namespace lockstep
