#include "lockstep/run/state_tree.h"

#include <torch/torch.h>

#include "lockstep/tensor/generator.h"

namespace lockstep::run {
namespace {

using tensor::device_generator;

constexpr double kNoBetas = -1;

Tree group_tree(const std::map<std::string, double>& settings,
                const ParameterGroup& group, std::string_view kind,
                int64_t first_parameter) {
  Tree tree = Tree::dict();
  double beta1 = kNoBetas;
  double beta2 = kNoBetas;
  for (const auto& [name, value] : settings) {
    if (name == "beta1") {
      beta1 = value;
    } else if (name == "beta2") {
      beta2 = value;
    } else if (name == "nesterov") {
      tree[name] = value != 0;
    } else {
      tree[name] = value;
    }
  }
  if (beta1 != kNoBetas) tree["betas"] = Tree::tuple({beta1, beta2});
  if (kind != "sgd") {
    tree["amsgrad"] = false;
    tree["capturable"] = false;
    tree["decoupled_weight_decay"] = kind == "adamw";
  }
  tree["maximize"] = false;
  tree["foreach"] = Tree();
  tree["differentiable"] = false;
  tree["fused"] = true;
  Tree parameters = Tree::list();
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    parameters.push_back(first_parameter + static_cast<int64_t>(i));
  }
  tree["params"] = std::move(parameters);
  return tree;
}

}  // namespace

Tree optimizer_tree(const Optimizer& optimizer) {
  const OptimizerState state = optimizer.state();
  Tree tree = Tree::dict();
  Tree parameters = Tree::dict();
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    if (state.parameters[i].empty()) continue;
    Tree entry = Tree::dict();
    for (const auto& [name, tensor] : state.parameters[i]) entry[name] = tensor;
    parameters[static_cast<int64_t>(i)] = std::move(entry);
  }
  tree["state"] = std::move(parameters);
  Tree groups = Tree::list();
  int64_t first = 0;
  for (size_t g = 0; g < state.groups.size(); ++g) {
    const ParameterGroup& group = optimizer.groups()[g];
    groups.push_back(
        group_tree(state.groups[g], group, optimizer.kind(), first));
    first += static_cast<int64_t>(group.parameters.size());
  }
  tree["param_groups"] = std::move(groups);
  return tree;
}

void load_optimizer(Optimizer& optimizer, const TreeView& tree) {
  OptimizerState state = optimizer.state();
  for (auto& entry : state.parameters) entry.clear();
  const TreeView entries = tree.at("state");
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    const auto entry = entries.find(static_cast<int64_t>(i));
    if (!entry) continue;
    for (const auto& item : entry->as_dict()) {
      if (const at::Tensor* tensor = item.value.get_if<at::Tensor>()) {
        state.parameters[i][*item.key.get_if<std::string>()] = *tensor;
      }
    }
  }
  for (size_t g = 0; g < state.groups.size(); ++g) {
    state.groups[g]["lr"] = tree.at("param_groups")
                                .at(static_cast<int64_t>(g))
                                .at("lr")
                                .as_double();
  }
  optimizer.load(state);
}

Tree scaler_tree(const optim::GradScaler& scaler) {
  const optim::GradScalerState state = scaler.state();
  Tree tree = Tree::dict();
  tree["scale"] = state.scale.item<double>();
  tree["growth_factor"] = state.growth_factor;
  tree["backoff_factor"] = state.backoff_factor;
  tree["growth_interval"] = state.growth_interval;
  tree["_growth_tracker"] = state.growth_tracker.item<int64_t>();
  return tree;
}

void load_scaler(optim::GradScaler& scaler, const TreeView& tree) {
  optim::GradScalerState state = scaler.state();
  state.scale = torch::full_like(state.scale, tree.at("scale").as_double());
  state.growth_tracker = torch::full_like(state.growth_tracker,
                                          tree.at("_growth_tracker").as_int());
  scaler.load(state);
}

Tree scheduler_tree(const Optimizer& optimizer, const engine::TrainState& state,
                    double base_lr) {
  Tree base_lrs = Tree::list();
  Tree last_lrs = Tree::list();
  Tree functions = Tree::list();  // Python functions, which are not saved.
  for (const ParameterGroup& group : optimizer.groups()) {
    base_lrs.push_back(base_lr * group.lr_scale);
    last_lrs.push_back(optimizer.lr() * group.lr_scale);
    functions.push_back(Tree());
  }
  Tree tree = Tree::dict();
  tree["_last_lr"] = std::move(last_lrs);
  if (state.plateau) {
    tree["last_epoch"] = state.val_losses.count;
    tree["best"] = state.plateau->best;
    tree["num_bad_epochs"] = state.plateau->num_bad;
    tree["cooldown_counter"] = state.plateau->cooldown_left;
    return tree;
  }
  tree["last_epoch"] = state.step;
  tree["_step_count"] = state.step + 1;
  tree["base_lrs"] = std::move(base_lrs);
  tree["lr_lambdas"] = std::move(functions);
  return tree;
}

Tree ema_tree(const Ema& ema, const std::vector<std::string>& names) {
  const EmaState state = ema.state();
  Tree averages = Tree::dict();
  for (size_t i = 0; i < names.size(); ++i) {
    averages[names[i]] = state.averages.at(i);
  }
  Tree tree = Tree::dict();
  tree["num_updates"] = state.num_updates;
  tree["state_dict"] = std::move(averages);
  return tree;
}

void load_ema(Ema& ema, const std::vector<std::string>& names,
              const TreeView& tree) {
  EmaState state{.num_updates = tree.at("num_updates").as_int()};
  for (const std::string& name : names) {
    state.averages.push_back(tree.at("state_dict").at(name).as_tensor());
  }
  ema.load(state);
}

Tree bucket_layout_tree(const BucketLayout& layout) {
  Tree tree = Tree::list();
  for (const auto& bucket : layout) {
    tree.push_back(Tree::list({bucket.begin(), bucket.end()}));
  }
  return tree;
}

BucketLayout read_bucket_layout(const TreeView& tree) {
  BucketLayout layout;
  for (size_t b = 0; b < tree.as_list().size(); ++b) {
    const TreeView bucket = tree.at(static_cast<int64_t>(b));
    auto& places = layout.emplace_back();
    for (size_t i = 0; i < bucket.as_list().size(); ++i) {
      places.push_back(
          static_cast<size_t>(bucket.at(static_cast<int64_t>(i)).as_int()));
    }
  }
  return layout;
}

Tree gathered_tree(const at::Tensor& tensor, const World& world) {
  Tree all = Tree::list();
  for (const at::Tensor& one : world.all_gather(tensor.to(world.device()))) {
    all.push_back(one.to(at::kCPU));
  }
  return all;
}

at::Tensor cpu_generator_state() {
  return device_generator(c10::Device(c10::DeviceType::CPU)).get_state();
}

void set_cpu_generator_state(const at::Tensor& state) {
  auto generator = device_generator(c10::Device(c10::DeviceType::CPU));
  generator.set_state(state.clone());
}

at::Tensor device_generator_state(const World& world) {
  return device_generator(world.device()).get_state();
}

void set_device_generator_state(const World& world, const at::Tensor& state) {
  auto generator = device_generator(world.device());
  generator.set_state(state.clone());
}

Tree generators_tree(const World& world) {
  Tree tree = Tree::dict();
  tree["cpu"] = gathered_tree(cpu_generator_state(), world);
  if (!world.device().is_cpu()) {
    tree["device"] = gathered_tree(device_generator_state(world), world);
  }
  return tree;
}

void load_generators(const World& world, const TreeView& tree) {
  const auto own = [&](const TreeView& states) {
    return states.at(world.rank()).as_tensor();
  };
  set_cpu_generator_state(own(tree.at("cpu")));
  const auto device = tree.find("device");
  if (world.device().is_cpu() || !device) return;
  set_device_generator_state(world, own(*device));
}

}  // namespace lockstep::run
