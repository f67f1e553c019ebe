// Lowers the learning rate when a metric stops getting better: the decisions
// of Python's ReduceLROnPlateau.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::optim {

struct PlateauConfig {
  std::string mode = "min";  // min: smaller is better; or max
  double factor = 0.1;
  int64_t patience = 10;  // bad metrics in a row that are allowed
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // or abs
  int64_t cooldown = 0;  // metrics not looked at after a reduction
  // What min_lr and eps are compared with: the learning rate that factor()
  // multiplies. With 1 they are factors themselves.
  double base_lr = 1;
  double min_lr = 0;
  double eps = 1e-8;  // smaller reductions are not made
};

struct PlateauState {
  double lr = 1;
  double best = 0;
  int64_t num_bad = 0;
  int64_t cooldown_left = 0;
};

class Plateau {
 public:
  explicit Plateau(PlateauConfig config);

  // Once per evaluation, with the same number on all ranks. NaN counts as bad.
  void observe(double metric);

  double lr() const { return state_.lr; }  // base_lr after all reductions
  // What multiplies the scheduled learning rate.
  double factor() const { return state_.lr / config_.base_lr; }

  PlateauState state() const { return state_; }
  void load(const PlateauState& state) { state_ = state; }

 private:
  bool is_better(double metric) const;
  void reduce();

  PlateauConfig config_;
  PlateauState state_;
};

}  // namespace lockstep::optim
