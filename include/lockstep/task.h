// A task: data, model, loss and metrics, as one process sees them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/dataset.h"
#include "lockstep/export.h"
#include "lockstep/loss.h"
#include "lockstep/metrics.h"
#include "lockstep/optimizer.h"
#include "lockstep/random.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

struct DataSets {
  // Null: none was opened, as for eval and sample. A training needs it.
  std::shared_ptr<const Dataset> train = {};
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
};

enum class Better { kLower, kHigher };

// The shapes of a training's batches.
enum class BatchShapes {
  kDefault,
  kStatic,   // Enables cuDNN benchmark mode.
  kDynamic,  // Avoids kernels compiled per shape.
};

struct TaskInfo {
  // Model and data, logged at the start of a run: "JiT-B/4 on text".
  std::string subject = {};
  // The metric that selects the best model, a name that evaluate() or derive()
  // gives (checked at the first validation), and its direction.
  std::string best_metric = "loss";
  Better better = Better::kLower;
  // Flags to suggest when memory runs out, best first.
  std::vector<std::string> memory_remedies = {};
  // Frozen networks that checkpoints do not contain: name ("vggt") and hash of
  // the weights. A checkpoint with different hashes is refused.
  std::vector<std::pair<std::string, std::string>> frozen = {};
  // Some parameters are unused in some steps.
  bool has_unused_parameters = false;
  BatchShapes shapes = BatchShapes::kDefault;
  // Its SyncBatchNorms compute statistics over all ranks.
  bool sync_batch_norm = false;
  // Approximate normaliser of one sample; 1 if it counts samples.
  double normaliser_per_sample = 1;
  // Forward and backward together; 0: not known.
  double flops_per_sample = 0;
};

// Ready once constructed: functions may be called in any order, and the
// results of info(), data() and model() never change. A task does not know its
// rank, call collectives or write files. Optional abilities are separate
// interfaces: Sampling, Prediction, ImageScoring, FeatureCaching, Reporting.
// Used by one thread.
class LOCKSTEP_EXPORT Task {
 public:
  virtual ~Task() = default;

  virtual TaskInfo info() const { return {}; }

  virtual DataSets data() const = 0;

  // Made on the CPU; the caller moves it to its device.
  virtual std::shared_ptr<torch::nn::Module> model() const = 0;

  // Default: one group of all parameters that require a gradient.
  virtual std::vector<ParameterGroup> parameter_groups() const;

  // The training loss of a batch. Batch and model are on the same device;
  // floating-point tensors of the batch have the model's type with
  // --precision fp64, else the type that the data set gave them. Random draws
  // for samples must come from `random` only.
  virtual Loss loss(const Batch& batch, SampleRandom& random) = 0;

  // Adds the batch's metrics. Default: its loss, as "loss"; an override that
  // wants it too calls Task::evaluate(). The model is in eval mode, without
  // gradients.
  virtual void evaluate(const Batch& batch, SampleRandom& random,
                        MetricSums& sums);

  // Metrics computed from the counts of all batches and ranks, such as those of
  // a confusion matrix. Default: none.
  virtual Metrics derive(const MetricCounts& counts) const;
};

// The interface `Ability` of a task or recipe; null when it has no such
// ability.
template <typename Ability, typename Owner>
Ability* ability(Owner& owner) {
  return dynamic_cast<Ability*>(&owner);
}

}  // namespace lockstep
