// Metrics of an evaluation: sums over all samples and ranks, exact.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/loss.h"

namespace lockstep {

class World;

using Metrics = std::vector<std::pair<std::string, double>>;

// Counts by name, int64 tensors on the CPU.
using MetricCounts = std::map<std::string, at::Tensor>;

// Null when there is no such metric.
LOCKSTEP_EXPORT const double* find_metric(const Metrics& metrics,
                                          std::string_view name);

// Collects values on the device; nothing is read back before result().
class LOCKSTEP_EXPORT MetricSums {
 public:
  // `values`: one per sample or a sum, of any shape; `count`: divisor of their
  // total. Values per sample give a result that does not depend on how the
  // samples were spread over ranks and batches.
  void add(const std::string& name, const at::Tensor& values, double count);
  // The same with a count that is known on the device only.
  void add(const std::string& name, const at::Tensor& values,
           const at::Tensor& count);

  // A term of a loss under its name. All terms together, weighted, are "loss";
  // a term without scored values counts as 0.
  void add_term(const LossTerm& term);

  // Counts such as a confusion matrix, summed element by element: int64, the
  // same shape in every batch, on the model's device. Task::derive() gets the
  // totals under this name, in this shape, on the CPU. Throws
  // Error for another type, or another shape than before.
  void add_counts(const std::string& name, const at::Tensor& counts);

  // Sum of all values of all ranks, rounded once (so the order does not
  // matter), over the sum of all counts. A collective; equal on every rank. A
  // metric whose count is 0 is NaN.
  Metrics result(const World& world) const;

  // The counts of all batches and ranks. A collective; equal on every rank.
  MetricCounts counts(const World& world) const;

 private:
  struct Column {
    std::vector<at::Tensor> values = {};
    std::vector<at::Tensor> counts = {};
    std::optional<double> weight = {};  // Set for a term of the loss.
  };
  Column& column(const std::string& name);

  std::vector<std::string> names_;
  std::map<std::string, Column> columns_;
  MetricCounts counts_;  // On the device, until counts().
};

// The sum of the numbers as if computed without rounding, then rounded once.
LOCKSTEP_EXPORT double exact_sum(const std::vector<double>& values);

}  // namespace lockstep
