#include "lockstep/engine/loss_check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/error.h"

namespace lockstep::engine {
namespace {

[[noreturn]] void refuse_loss(const std::string& recipe,
                              const std::string& name,
                              const std::string& problem) {
  throw ConfigError(fmt::format("loss() of the recipe {}: {} {}",
                                recipe.empty() ? "(unnamed)" : recipe, name,
                                problem));
}

void check_scalar(const at::Tensor& value, const std::string& recipe,
                  const std::string& name) {
  if (!value.defined()) refuse_loss(recipe, name, "is not set");
  if (value.dim() != 0) {
    refuse_loss(recipe, name,
                fmt::format("has the shape [{}] and must be a scalar: add its "
                            "numbers up with .sum()",
                            fmt::join(value.sizes(), ", ")));
  }
}

void check_sum(const at::Tensor& value, const std::string& recipe,
               const std::string& name) {
  check_scalar(value, recipe, name);
  if (!value.is_floating_point()) {
    refuse_loss(recipe, name,
                fmt::format("has the type {} and must be a floating-point "
                            "number",
                            c10::toString(value.scalar_type())));
  }
}

void require_gradient(bool has_gradient, const std::string& recipe,
                      const std::string& name) {
  if (has_gradient || !at::GradMode::is_enabled()) return;
  refuse_loss(recipe, name,
              "has no gradient: it does not depend on parameters that are "
              "trained, or was detached");
}

}  // namespace

void check_loss(const Loss& loss, const std::string& recipe) {
  // A term may be constant, for example in a batch without labelled pixels.
  bool has_gradient = false;
  for (const LossTerm& term : loss.terms) {
    check_sum(term.sum, recipe,
              fmt::format("the sum of the term '{}'", term.name));
    check_scalar(term.normaliser, recipe,
                 fmt::format("the normaliser of the term '{}'", term.name));
    has_gradient = has_gradient || term.sum.requires_grad();
  }
  if (!loss.terms.empty()) {
    return require_gradient(has_gradient, recipe, "the sum of all terms");
  }
  check_sum(loss.sum, recipe, "sum");
  require_gradient(loss.sum.requires_grad(), recipe, "sum");
  if (loss.normaliser.defined()) {
    check_scalar(loss.normaliser, recipe, "normaliser");
  }
  for (const auto& [name, value] : loss.parts) {
    check_scalar(value, recipe, fmt::format("the part '{}'", name));
  }
}

}  // namespace lockstep::engine
