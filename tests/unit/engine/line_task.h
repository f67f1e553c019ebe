// A task small enough to compute by hand: y = w x with squared errors.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "lockstep/task.h"

namespace lockstep::testing {

// Sample i is (x, y) = (i + 1, 3 (i + 1)); w begins with 1.
class LineTask : public Task {
 public:
  explicit LineTask(int64_t num_samples = 8) : line_(make_line()) {
    const at::Tensor x =
        torch::arange(1, num_samples + 1, torch::kFloat).unsqueeze(1);
    data_ = std::make_shared<TensorDataset>(std::vector<at::Tensor>{x, 3 * x});
  }

  TaskInfo info() const override { return {}; }
  DataSets data() const override {
    return {.train = data_, .validation = data_};
  }
  std::shared_ptr<torch::nn::Module> model() const override {
    return line_.ptr();
  }
  Loss loss(const Batch& batch, SampleRandom& /*random*/) override {
    return {.sum = (line_->forward(batch[0]) - batch[1]).pow(2).sum() *
                   loss_factor};
  }

  double weight() const { return line_->weight.item<double>(); }

  double loss_factor = 1;  // NaN: no gradient is finite.

 private:
  static torch::nn::Linear make_line() {
    torch::nn::Linear line(torch::nn::LinearOptions(1, 1).bias(false));
    torch::NoGradGuard no_grad;
    line->weight.fill_(1);
    return line;
  }

  torch::nn::Linear line_;
  std::shared_ptr<const Dataset> data_;
};

}  // namespace lockstep::testing
