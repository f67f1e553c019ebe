#include "lockstep/metrics.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"
#include "lockstep/world.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

std::vector<double> to_host(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.flatten());
  const at::Tensor all = at::cat(flat).to(at::kCPU).contiguous();
  const auto* begin = all.const_data_ptr<double>();
  return {begin, begin + all.numel()};
}

// Values of one metric from all ranks.
struct Total {
  std::vector<double> values = {};
  std::vector<double> counts = {};
  std::optional<double> weight = {};
};

// As bit patterns: text must not round, and JSON has no NaN.
std::vector<uint64_t> to_bits(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  bits.reserve(values.size());
  for (const double value : values) {
    bits.push_back(std::bit_cast<uint64_t>(value));
  }
  return bits;
}

void append(std::vector<double>& values, const Json& bits) {
  for (const Json& bit : bits) {
    values.push_back(std::bit_cast<double>(bit.get<uint64_t>()));
  }
}

// Throws Error for another type than int64 or another shape than before.
void add_table(MetricCounts& tables, const std::string& name,
               const at::Tensor& counts) {
  if (counts.scalar_type() != at::kLong) {
    throw Error(fmt::format("add_counts(\"{}\"): counts must be int64, not {}",
                            name, std::string(counts.dtype().name())));
  }
  const auto [place, is_new] = tables.try_emplace(name, counts);
  if (is_new) return;
  at::Tensor& sum = place->second;
  if (sum.sizes() != counts.sizes()) {
    throw Error(fmt::format("add_counts(\"{}\"): shape {}, but {} before", name,
                            base::shape_text(counts.sizes()),
                            base::shape_text(sum.sizes())));
  }
  sum = sum.add(counts);
}

}  // namespace

const double* find_metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return &value;
  }
  return nullptr;
}

// Shewchuk's partial sums: they never overlap, so nothing is lost.
double exact_sum(const std::vector<double>& values) {
  // Infinities and NaN are added as they are.
  const double plain = std::accumulate(values.begin(), values.end(), 0.0);
  if (!std::isfinite(plain)) return plain;
  std::vector<double> partials;
  for (double x : values) {
    size_t kept = 0;
    for (double y : partials) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  // From the largest down; a remainder exactly halfway between two numbers is
  // rounded by the sign of the next partial sum.
  double sum = 0;
  while (!partials.empty()) {
    const double x = sum;
    const double y = partials.back();
    partials.pop_back();
    sum = x + y;
    const double low = y - (sum - x);
    if (low == 0) continue;
    if (!partials.empty() && (low < 0) == (partials.back() < 0)) {
      const double twice = low * 2;
      const double rounded = sum + twice;
      if (twice == rounded - sum) sum = rounded;
    }
    break;
  }
  return sum;
}

MetricSums::Column& MetricSums::column(const std::string& name) {
  const auto [place, is_new] = columns_.try_emplace(name);
  if (is_new) names_.push_back(name);
  return place->second;
}

void MetricSums::add(const std::string& name, const at::Tensor& values,
                     double count) {
  add(name, values, at::scalar_tensor(count, at::kDouble));
}

void MetricSums::add(const std::string& name, const at::Tensor& values,
                     const at::Tensor& count) {
  Column& entry = column(name);
  entry.values.push_back(values.detach().to(at::kDouble));
  entry.counts.push_back(count.detach().to(at::kDouble));
}

void MetricSums::add_term(const LossTerm& term) {
  add(term.name, term.sum, term.normaliser);
  column(term.name).weight = term.weight;
}

void MetricSums::add_counts(const std::string& name, const at::Tensor& counts) {
  add_table(counts_, name, counts);
}

// Exchanged as text because ranks without a batch do not know the names.
MetricCounts MetricSums::counts(const World& world) const {
  Json own = Json::object();
  for (const auto& [name, counts] : counts_) {
    const at::Tensor flat = counts.to(at::kCPU).contiguous();
    const auto* begin = flat.const_data_ptr<int64_t>();
    own[name] = {{"shape", flat.sizes().vec()},
                 {"counts", std::vector(begin, begin + flat.numel())}};
  }
  MetricCounts all;
  for (const std::string& text : world.gather_texts(own.dump())) {
    const Json texts = Json::parse(text);
    for (const auto& [name, entry] : texts.items()) {
      const auto values = entry.at("counts").get<std::vector<int64_t>>();
      const at::Tensor counts =
          at::tensor(values, at::kLong)
              .view(entry.at("shape").get<std::vector<int64_t>>());
      add_table(all, name, counts);
    }
  }
  return all;
}

Metrics MetricSums::result(const World& world) const {
  Json own = Json::array();
  for (const std::string& name : names_) {
    const Column& entry = columns_.at(name);
    std::vector<double> counts;
    for (const at::Tensor& count : entry.counts) {
      counts.push_back(count.item<double>());
    }
    own.push_back({{"name", name},
                   {"values", to_bits(to_host(entry.values))},
                   {"counts", to_bits(counts)}});
    if (entry.weight) own.back()["weight"] = *entry.weight;
  }
  // A rank without a batch does not know the names.
  std::vector<std::string> names;
  std::map<std::string, Total> all;
  for (const std::string& text : world.gather_texts(own.dump())) {
    for (const Json& entry : Json::parse(text)) {
      const auto name = entry.at("name").get<std::string>();
      if (!all.contains(name)) names.push_back(name);
      Total& total = all[name];
      append(total.values, entry.at("values"));
      append(total.counts, entry.at("counts"));
      if (entry.contains("weight")) total.weight = entry.at("weight");
    }
  }
  Metrics result;
  std::optional<double> loss;
  for (const std::string& name : names) {
    const Total& total = all.at(name);
    const double count = exact_sum(total.counts);
    const double value = exact_sum(total.values) / count;
    result.emplace_back(name, value);
    if (!total.weight) continue;
    loss = loss.value_or(0) + (count == 0 ? 0 : *total.weight * value);
  }
  if (loss) result.emplace(result.begin(), "loss", *loss);
  return result;
}

}  // namespace lockstep
