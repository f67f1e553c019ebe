#include "lockstep/engine/product_choice.h"

#include "lockstep/kernels/linear_product.h"

namespace lockstep::engine {

ProductChoice::ProductChoice(const World& world,
                             kernels::WorkingWeights& weights)
    : world_(world), weights_(weights) {
  auto algorithms = kernels::new_product_algorithms(world.device());
  if (world.is_main()) algorithms->start_timing();
  weights.set_algorithms(std::move(algorithms));
}

void ProductChoice::share() {
  if (is_shared_) return;
  is_shared_ = true;
  kernels::ProductAlgorithms& algorithms = *weights_.algorithms();
  algorithms.stop_timing();
  if (world_.size() == 1) return;
  const std::string text = world_.broadcast_text(algorithms.text());
  if (!world_.is_main()) algorithms.take(text);
}

std::string ProductChoice::text() const {
  return weights_.algorithms()->text();
}

void ProductChoice::take(const std::string& text) {
  weights_.algorithms()->take(text);
}

}  // namespace lockstep::engine
