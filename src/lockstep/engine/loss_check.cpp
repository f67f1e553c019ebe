#include "lockstep/engine/loss_check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/error.h"

namespace lockstep::engine {
namespace {

enum class Gradient { kNeeded, kNone };

[[noreturn]] void refuse_loss(const std::string& recipe,
                              const std::string& name,
                              const std::string& problem) {
  throw ConfigError(fmt::format("loss() of the recipe {}: {} {}",
                                recipe.empty() ? "(unnamed)" : recipe, name,
                                problem));
}

void check_scalar(const at::Tensor& value, Gradient gradient,
                  const std::string& recipe, const std::string& name) {
  if (!value.defined()) refuse_loss(recipe, name, "is not set");
  if (value.dim() != 0) {
    refuse_loss(recipe, name,
                fmt::format("has the shape [{}] and must be a scalar: add its "
                            "numbers up with .sum()",
                            fmt::join(value.sizes(), ", ")));
  }
  if (gradient == Gradient::kNone) return;
  if (!value.is_floating_point()) {
    refuse_loss(recipe, name,
                fmt::format("has the type {} and must be a floating-point "
                            "number",
                            c10::toString(value.scalar_type())));
  }
  if (at::GradMode::is_enabled() && !value.requires_grad()) {
    refuse_loss(recipe, name,
                "has no gradient: it does not depend on parameters that are "
                "trained, or was detached");
  }
}

}  // namespace

void check_loss(const Loss& loss, const std::string& recipe) {
  for (const LossTerm& term : loss.terms) {
    check_scalar(term.sum, Gradient::kNeeded, recipe,
                 fmt::format("the sum of the term '{}'", term.name));
    check_scalar(term.normaliser, Gradient::kNone, recipe,
                 fmt::format("the normaliser of the term '{}'", term.name));
  }
  if (!loss.terms.empty()) return;
  check_scalar(loss.sum, Gradient::kNeeded, recipe, "sum");
  if (loss.normaliser.defined()) {
    check_scalar(loss.normaliser, Gradient::kNone, recipe, "normaliser");
  }
  for (const auto& [name, value] : loss.parts) {
    check_scalar(value, Gradient::kNone, recipe,
                 fmt::format("the part '{}'", name));
  }
}

}  // namespace lockstep::engine
