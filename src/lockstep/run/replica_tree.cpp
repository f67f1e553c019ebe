#include "lockstep/run/replica_tree.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/run/checkpoint_sections.h"
#include "lockstep/run/state_tree.h"

namespace lockstep::run {
namespace {

// Everything an exact resume needs beyond the original project's layout.
Tree own_tree(engine::Learner& learner, const engine::TrainState& state,
              const CheckpointsConfig& config) {
  Tree own = Tree::dict();
  own["version"] = 1;
  own["recipe"] = config.recipe;
  own["state"] = train_state_tree(state);
  own["threads"] = at::get_num_threads();
  own["global_batch"] = config.global_batch;
  own["seed"] = static_cast<int64_t>(config.seed);
  own["num_samples"] = config.num_samples;
  own["config"] = config.config_yaml;
  Tree frozen = Tree::dict();
  for (const auto& [name, hash] : learner.info().frozen) frozen[name] = hash;
  own["frozen"] = std::move(frozen);
  Tree averages = Tree::list();
  for (const Ema& ema : learner.averages()) {
    averages.push_back(ema_tree(ema, learner.parameter_names()));
  }
  own["ema"] = std::move(averages);
  if (learner.scaler() != nullptr) {
    own["scaler"] = scaler_tree(*learner.scaler());
  }
  return own;
}

}  // namespace

void check_frozen(const Tree& checkpoint, const FrozenNets& frozen) {
  const auto own = TreeView(checkpoint).find("lockstep");
  const auto saved = own ? own->find("frozen") : std::nullopt;
  if (!saved) return;
  for (const auto& [name, hash] : frozen) {
    const auto other = saved->find(name);
    if (!other || other->as_string() == hash) continue;
    throw ConfigError(
        fmt::format("the checkpoint was trained with other weights of {} (hash "
                    "{:.12} then, {:.12} now): use the same weights, or start "
                    "a new run with --init_from",
                    name, other->as_string(), hash));
  }
}

Tree replica_tree(engine::Learner& learner, const engine::TrainState& state,
                  const CheckpointsConfig& config) {
  const CheckpointLayout& layout = config.layout;
  Tree own = own_tree(learner, state, config);
  Tree tree = Tree::dict();
  put_progress(tree, state, layout);
  put_model(tree, learner.model(), layout);
  put_averages(tree, learner, layout);
  Tree optimizer = optimizer_tree(learner.optimizer());
  if (layout.optimizer.empty()) {
    own["optimizer"] = std::move(optimizer);
  } else {
    tree[layout.optimizer] = std::move(optimizer);
  }
  if (!layout.scheduler.empty()) {
    tree[layout.scheduler] =
        scheduler_tree(learner.optimizer(), state, config.base_lr);
  }
  if (!layout.scaler.empty()) {
    tree[layout.scaler] = learner.scaler() != nullptr
                              ? scaler_tree(*learner.scaler())
                              : Tree::dict();
  }
  if (!layout.settings.empty()) tree[layout.settings] = config.settings;
  tree["lockstep"] = std::move(own);
  return tree;
}

void restore_replicas(const Tree& checkpoint, engine::Learner& learner,
                      const CheckpointsConfig& config) {
  const TreeView own = checkpoint.at("lockstep");
  check_frozen(checkpoint, learner.info().frozen);
  load_module_state(learner.model(),
                    find_weights(checkpoint, config.layout, "the checkpoint"));
  const std::string& optimizer = config.layout.optimizer;
  load_optimizer(learner.optimizer(), optimizer.empty()
                                          ? own.at("optimizer")
                                          : checkpoint.at(optimizer));
  if (learner.scaler() != nullptr) {
    if (const auto scaler = own.find("scaler")) {
      load_scaler(*learner.scaler(), *scaler);
    }
  }
  const TreeView averages = own.at("ema");
  if (averages.as_list().size() != learner.averages().size()) {
    throw ConfigError(fmt::format(
        "the checkpoint has {} moving averages and --ema_decay asks for {}: "
        "resume with the same --ema_decay",
        averages.as_list().size(), learner.averages().size()));
  }
  for (size_t i = 0; i < learner.averages().size(); ++i) {
    load_ema(learner.averages()[i], learner.parameter_names(),
             averages.at(static_cast<int64_t>(i)));
  }
}

}  // namespace lockstep::run
