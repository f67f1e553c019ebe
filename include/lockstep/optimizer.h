// Optimizers over libtorch's fused kernels: one pass over parameter, gradient
// and state, on the CPU and on CUDA. They give the bits of Python's
// torch.optim with fused=True (but for SGD of bfloat16 on the CPU, which does
// not work in libtorch 2.11 and does here).
//
// Not thread-safe. An optimizer shares the parameters with their module and
// owns its state. Nothing here waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {
namespace optim {
class FusedUpdate;
}  // namespace optim
namespace parallel {
class ShardedUpdate;
}  // namespace parallel

// Parameters that are trained with the same settings.
struct ParameterGroup {
  std::string name = {};
  std::vector<at::Tensor> parameters = {};
  double lr_scale = 1;                      // times the optimizer's lr
  std::optional<double> weight_decay = {};  // unset: the optimizer's own
};

// What a checkpoint keeps. It maps to Python's optimizer.state_dict() so:
//   parameters[i]  -> state_dict["state"][i], under the same names: "step"
//       (0-dim float32), "exp_avg", "exp_avg_sq" of Adam and AdamW,
//       "momentum_buffer" of SGD. i counts through all groups in order. Empty
//       where a parameter has had no step: Python then has no entry i.
//   groups[g]      -> state_dict["param_groups"][g]; "beta1" and "beta2"
//       together are the tuple "betas", "nesterov" is a bool, "lr" already
//       holds lr_scale; the other names are Python's. "params" is the list of
//       the group's i; what else Python writes there (amsgrad, maximize,
//       foreach, capturable, differentiable: False; fused: True;
//       decoupled_weight_decay: kind() is "adamw") is constant.
struct OptimizerState {
  std::vector<std::map<std::string, at::Tensor>> parameters = {};
  std::vector<std::map<std::string, double>> groups = {};
};

class LOCKSTEP_EXPORT Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update of all parameters that have a gradient. With `found_inf` (0-dim
  // float32) equal to 1 on the device, parameters, state and step counters stay
  // as they are. Throws ConfigError for sparse gradients.
  void step(const std::optional<at::Tensor>& found_inf = {});
  // Makes every .grad undefined. Also works for gradients that are views into
  // buckets of DistributedDataParallel.
  void clear_gradients();
  void step_and_clear(const std::optional<at::Tensor>& found_inf = {});

  // A group uses lr() times its lr_scale.
  void set_lr(double lr);
  double lr() const { return lr_; }

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  std::string_view kind() const { return kind_; }  // as in make_optimizer()

  // The tensors are the optimizer's own: copy them before the next step.
  OptimizerState state() const;
  // Copies tensors and lr; all other settings stay those of this object. Throws
  // ConfigError if the state belongs to other parameters or another kind; then
  // nothing has changed.
  void load(const OptimizerState& state);

 protected:
  // Parameters that one kernel updates: same group, device and type.
  struct Slice {
    double lr = 0;
    double weight_decay = 0;
    bool is_first_step = false;  // their state is zero
    std::optional<at::Tensor> found_inf = {};
    std::vector<at::Tensor> parameters = {};
    std::vector<at::Tensor> gradients = {};
    std::vector<std::vector<at::Tensor>> state = {};  // a list per state name
  };
  struct Setup {
    std::string kind = {};
    double lr = 0;
    double weight_decay = 0;
    std::vector<std::string> state_names = {};
  };
  Optimizer(std::vector<ParameterGroup> groups, Setup setup);

 private:
  friend class optim::FusedUpdate;
  friend class parallel::ShardedUpdate;
  struct Member {
    at::Tensor parameter;
    std::vector<at::Tensor> state;  // as state_names_; empty before a step
  };

  virtual void update(const Slice& slice) const = 0;
  virtual std::map<std::string, double> settings() const = 0;

  void check_group(const ParameterGroup& group) const;
  std::vector<Slice> slices_of(size_t group,
                               const std::optional<at::Tensor>& found_inf);
  std::vector<at::Tensor> new_state(const at::Tensor& parameter) const;
  std::vector<at::Tensor> loaded_state(
      const Member& member, size_t number,
      const std::map<std::string, at::Tensor>& saved) const;

  std::string kind_;
  double lr_ = 0;
  double weight_decay_ = 0;
  std::vector<std::string> state_names_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<Member>> members_;  // per group
};

struct AdamConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  std::optional<double> weight_decay = {};  // none: AdamW 0.01, Adam 0
};

// What Adam and AdamW share; they differ in how weights decay.
class LOCKSTEP_EXPORT AdamFamily : public Optimizer {
 protected:
  enum class Decay { kInGradient, kDecoupled };
  AdamFamily(std::vector<ParameterGroup> groups, const AdamConfig& config,
             Decay decay);

 private:
  void update(const Slice& slice) const override;
  std::map<std::string, double> settings() const override;

  AdamConfig config_;
  Decay decay_;
};

class LOCKSTEP_EXPORT AdamW final : public AdamFamily {
 public:
  explicit AdamW(std::vector<ParameterGroup> groups, AdamConfig config = {});
  explicit AdamW(std::vector<at::Tensor> parameters, AdamConfig config = {});
};

class LOCKSTEP_EXPORT Adam final : public AdamFamily {
 public:
  explicit Adam(std::vector<ParameterGroup> groups, AdamConfig config = {});
  explicit Adam(std::vector<at::Tensor> parameters, AdamConfig config = {});
};

// With dampening, a first step that found_inf skips still counts as the first:
// the next one is dampened.
struct SgdConfig {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

class LOCKSTEP_EXPORT Sgd final : public Optimizer {
 public:
  explicit Sgd(std::vector<ParameterGroup> groups, SgdConfig config = {});
  explicit Sgd(std::vector<at::Tensor> parameters, SgdConfig config = {});

 private:
  void update(const Slice& slice) const override;
  void run_kernel(const Slice& slice) const;
  std::map<std::string, double> settings() const override;

  SgdConfig config_;
};

// The settings of all kinds; a kind ignores those it does not have.
struct OptimizerConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  std::optional<double> weight_decay = {};  // none: the kind's own default
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
};

// "adamw", "adam" or "sgd"; throws ConfigError for anything else.
LOCKSTEP_EXPORT std::unique_ptr<Optimizer> make_optimizer(
    std::string_view kind, std::vector<ParameterGroup> groups,
    const OptimizerConfig& config);

}  // namespace lockstep
