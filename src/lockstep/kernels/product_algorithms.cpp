#include "lockstep/kernels/product_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace lockstep::kernels {
namespace {

// A suggestion that is faster by less is within the noise of its timing.
constexpr double kLeastGain = 0.98;

// One product in a line: shape, then the words of the algorithm.
std::string line_of(const LinearProductShape& shape,
                    const ProductAlgorithm& algorithm) {
  std::string line =
      fmt::format("{} {} {} {} {} {}", static_cast<int>(shape.kind), shape.rows,
                  shape.in, shape.out, static_cast<int>(shape.has_bias),
                  static_cast<int>(shape.type));
  for (const uint64_t word : algorithm.words) {
    line += fmt::format(" {}", word);
  }
  return line;
}

struct TimedProduct {
  LinearProductShape shape = {};
  ProductAlgorithm algorithm = {};
};

std::optional<TimedProduct> read_line(const std::string& line) {
  std::istringstream in(line);
  TimedProduct product;
  int kind = 0;
  int type = 0;
  LinearProductShape& shape = product.shape;
  in >> kind >> shape.rows >> shape.in >> shape.out >> shape.has_bias >> type;
  for (uint64_t& word : product.algorithm.words) in >> word;
  std::string rest;
  if (!in || in >> rest) return {};
  shape.kind = static_cast<LinearProductKind>(kind);
  shape.type = static_cast<ElementType>(type);
  return product;
}

}  // namespace

ProductAlgorithms::ProductAlgorithms(std::string machine)
    : machine_(std::move(machine)) {}

ProductAlgorithms::Entry* ProductAlgorithms::entry_of(
    const LinearProductShape& shape) {
  const auto at = std::ranges::find(entries_, shape, &Entry::shape);
  return at == entries_.end() ? nullptr : &*at;
}

ProductAlgorithms::Entry ProductAlgorithms::choose(
    const LinearProductShape& shape, const Backend& backend) const {
  const std::vector<ProductAlgorithm> suggestions = backend.suggest();
  Entry entry{.shape = shape};
  if (suggestions.empty()) return entry;
  entry.algorithm = suggestions.front();
  if (!is_timing_) return entry;
  entry.is_timed = true;
  double best = 0;
  for (const ProductAlgorithm& algorithm : suggestions) {
    const double time = backend.time(algorithm);
    if (time < 0) continue;
    if (best != 0 && time > best * kLeastGain) continue;
    best = time;
    entry.algorithm = algorithm;
  }
  if (best == 0) entry.algorithm.reset();
  return entry;
}

std::optional<ProductAlgorithm> ProductAlgorithms::find(
    const LinearProductShape& shape, const Backend& backend) {
  Entry* entry = entry_of(shape);
  if (entry == nullptr) {
    entries_.push_back(choose(shape, backend));
    entry = &entries_.back();
  } else if (!entry->is_checked) {
    if (!backend.accepts(*entry->algorithm)) *entry = choose(shape, backend);
    entry->is_checked = true;
  }
  return entry->algorithm;
}

std::string ProductAlgorithms::text() const {
  std::string text = machine_ + "\n";
  for (const Entry& entry : entries_) {
    if (!entry.is_timed || !entry.algorithm) continue;
    text += line_of(entry.shape, *entry.algorithm) + "\n";
  }
  return text;
}

void ProductAlgorithms::take(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != machine_) return;
  while (std::getline(lines, line)) {
    const auto product = read_line(line);
    if (!product) return;
    const Entry taken{.shape = product->shape,
                      .algorithm = product->algorithm,
                      .is_timed = true,
                      .is_checked = false};
    if (Entry* known = entry_of(product->shape)) {
      *known = taken;
    } else {
      entries_.push_back(taken);
    }
  }
}

}  // namespace lockstep::kernels
