#include "interop/parity.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "lockstep/checkpoint.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

using torch::Tensor;

Tree run_reference(const std::string& script, const Tree& cases) {
  const TempDir folder;
  const auto in = folder.path() / "cases.pt";
  const auto out = folder.path() / "results.pt";
  save_checkpoint(in, cases);
  const auto python = run(
      {TORCH_PYTHON, PYTHON_SCRIPTS "/" + script, in.string(), out.string()},
      {.environment = {{"OMP_NUM_THREADS", "1"}}, .folder = ""});
  if (python.exit_code != 0) {
    throw std::runtime_error(script + " failed: " + python.err);
  }
  return load_checkpoint(out);
}

void shake(torch::nn::Module& model, double amount) {
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) {
      parameter.add_(amount * torch::randn_like(parameter));
    }
  }
}

void expect_close(const Tensor& ours, const Tensor& theirs,
                  const Closeness& closeness) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << closeness.what;
  if (ours.numel() == 0) return;
  const Tensor expected = theirs.to(at::kDouble);  // counts too
  const double size = expected.norm().item<double>();
  EXPECT_GT(size, 0) << closeness.what;
  EXPECT_LE((ours - expected).norm().item<double>() / size, closeness.tolerance)
      << closeness.what;
}

void expect_equal_gradients(const torch::nn::Module& model,
                            const TreeView& theirs, double tolerance) {
  size_t num_compared = 0;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    expect_close(item.value().grad(), theirs.at(item.key()).as_tensor(),
                 {.what = item.key(), .tolerance = tolerance});
    ++num_compared;
  }
  EXPECT_EQ(num_compared, theirs.as_dict().size());
}

}  // namespace lockstep::testing
