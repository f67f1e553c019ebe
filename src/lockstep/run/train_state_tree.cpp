#include "lockstep/run/state_tree.h"

namespace lockstep::run {
namespace {

Tree position_tree(const DataPosition& position) {
  return Tree::list({position.epoch, position.sample});
}

DataPosition read_position(const TreeView& tree) {
  return {.epoch = tree.at(int64_t{0}).as_int(),
          .sample = tree.at(int64_t{1}).as_int()};
}

Tree step_tree(const Step& step) {
  Tree tree = Tree::dict();
  tree["begin"] = position_tree(step.begin);
  tree["num_samples"] = step.num_samples;
  tree["num_micro_batches"] = step.num_micro_batches;
  tree["next"] = position_tree(step.next);
  return tree;
}

Step read_step(const TreeView& tree) {
  return {.begin = read_position(tree.at("begin")),
          .num_samples = tree.at("num_samples").as_int(),
          .num_micro_batches = tree.at("num_micro_batches").as_int(),
          .next = read_position(tree.at("next"))};
}

Tree due_tree(const engine::DueWork& due) {
  Tree tree = Tree::dict();
  if (due.logging) tree["logging"] = step_tree(*due.logging);
  tree["validation"] = due.validation;
  tree["sampling"] = due.sampling;
  tree["scoring"] = due.scoring;
  tree["saving"] = due.saving;
  return tree;
}

Tree plateau_tree(const optim::PlateauState& state) {
  Tree tree = Tree::dict();
  tree["lr"] = state.lr;
  tree["best"] = state.best;
  tree["num_bad_epochs"] = state.num_bad;
  tree["cooldown_counter"] = state.cooldown_left;
  return tree;
}

std::vector<double> read_numbers(const TreeView& tree) {
  std::vector<double> numbers;
  const auto count = static_cast<int64_t>(tree.as_list().size());
  for (int64_t i = 0; i < count; ++i) numbers.push_back(tree.at(i).as_double());
  return numbers;
}

// Older files count by the list alone.
engine::LossHistory read_losses(const TreeView& tree, const std::string& name) {
  engine::LossHistory history{.values = read_numbers(tree.at(name))};
  const auto count = tree.find("num_" + name);
  history.count = count ? count->as_int() : std::ssize(history.values);
  return history;
}

}  // namespace

Tree numbers_tree(const std::vector<double>& numbers) {
  Tree list = Tree::list();
  for (const double number : numbers) list.push_back(number);
  return list;
}

Tree train_state_tree(const engine::TrainState& state) {
  Tree tree = Tree::dict();
  tree["step"] = state.step;
  tree["epoch"] = state.position.epoch;
  tree["sample"] = state.position.sample;
  tree["due"] = due_tree(state.due);
  tree["logged_step"] = state.logged_step;
  tree["epoch_loss_sum"] = state.epoch_loss_sum;
  tree["epoch_loss_weight"] = state.epoch_loss_weight;
  tree["train_losses"] = numbers_tree(state.train_losses.values);
  tree["num_train_losses"] = state.train_losses.count;
  tree["val_losses"] = numbers_tree(state.val_losses.values);
  tree["num_val_losses"] = state.val_losses.count;
  if (state.best.value) tree["best"] = *state.best.value;
  Tree best_metrics = Tree::dict();
  for (const auto& [name, value] : state.best.metrics) {
    best_metrics[name] = value;
  }
  tree["best_metrics"] = std::move(best_metrics);
  tree["best_step"] = state.best.step;
  if (state.progress) tree["progress"] = *state.progress;
  tree["validations_without_progress"] = state.validations_without_progress;
  tree["stopped_early"] = state.stopped_early;
  if (state.plateau) tree["plateau"] = plateau_tree(*state.plateau);
  return tree;
}

engine::TrainState read_train_state(const TreeView& tree) {
  engine::TrainState state;
  state.step = tree.at("step").as_int();
  state.position = {.epoch = tree.at("epoch").as_int(),
                    .sample = tree.at("sample").as_int()};
  const TreeView due = tree.at("due");
  const auto scoring = due.find("scoring");  // Newer than the others.
  state.due = {.validation = due.at("validation").as_bool(),
               .sampling = due.at("sampling").as_bool(),
               .saving = due.at("saving").as_bool(),
               .scoring = scoring && scoring->as_bool()};
  if (const auto step = due.find("logging")) {
    state.due.logging = read_step(*step);
  }
  const auto logged = tree.find("logged_step");  // Newer than the others.
  if (logged) state.logged_step = logged->as_int();
  state.epoch_loss_sum = tree.at("epoch_loss_sum").as_double();
  state.epoch_loss_weight = tree.at("epoch_loss_weight").as_double();
  state.train_losses = read_losses(tree, "train_losses");
  state.val_losses = read_losses(tree, "val_losses");
  if (const auto best = tree.find("best")) {
    state.best.value = best->as_double();
  }
  const TreeView best_metrics = tree.at("best_metrics");
  for (const auto& entry : best_metrics.as_dict()) {
    const std::string& name = *entry.key.get_if<std::string>();
    state.best.metrics.emplace_back(name, best_metrics.at(name).as_double());
  }
  state.best.step = tree.at("best_step").as_int();
  if (const auto progress = tree.find("progress")) {
    state.progress = progress->as_double();
  }
  state.validations_without_progress =
      tree.at("validations_without_progress").as_int();
  state.stopped_early = tree.at("stopped_early").as_bool();
  if (const auto plateau = tree.find("plateau")) {
    state.plateau = {.lr = plateau->at("lr").as_double(),
                     .best = plateau->at("best").as_double(),
                     .num_bad = plateau->at("num_bad_epochs").as_int(),
                     .cooldown_left = plateau->at("cooldown_counter").as_int()};
  }
  return state;
}

}  // namespace lockstep::run
