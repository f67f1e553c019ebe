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
#include "lockstep/parameter_group.h"
#include "lockstep/sample_random.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

struct DataSets {
  std::shared_ptr<const Dataset> train = {};       // Null: not to train on.
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
};

enum class Better { kLower, kHigher };

// The shapes of a training's batches.
enum class BatchShapes {
  kDefault,
  kStatic,   // cuDNN may try which of its kernels are fast for them.
  kDynamic,  // Nothing is compiled for a shape, as cuDNN's attention would be.
};

struct TaskInfo {
  // What is trained on what, for the start of a run: "JiT-B/4 on text".
  std::string subject = {};
  // The metric that chooses the best model, and which way.
  std::string best_metric = "loss";
  Better better = Better::kLower;
  // What to try when memory runs out, as flags, best first.
  std::vector<std::string> memory_remedies = {};
  // Frozen networks that the model builds on and no checkpoint holds: the name
  // ("vggt") and the hash of its weights. A checkpoint with others is refused.
  std::vector<std::pair<std::string, std::string>> frozen = {};
  // Some parameters take no part in some steps.
  bool has_unused_parameters = false;
  BatchShapes shapes = BatchShapes::kDefault;
  // Its SyncBatchNorms compute statistics over all ranks.
  bool sync_batch_norm = false;
  // The normaliser of one sample, about: 1 where samples are counted.
  double normaliser_per_sample = 1;
  // Forward and backward together; 0: not known.
  double flops_per_sample = 0;
};

// Complete when it exists: no function has to be called before another, and
// what info(), data() and model() give never changes. A task knows no rank,
// calls no collective and writes no file. What only some tasks can do are
// interfaces of their own: Sampling, Prediction, ImageScoring, FeatureCaching,
// Reporting. Used by one thread.
class LOCKSTEP_EXPORT Task {
 public:
  virtual ~Task() = default;

  virtual TaskInfo info() const { return {}; }

  virtual DataSets data() const = 0;

  // Made on the CPU; the caller moves it to its device.
  virtual std::shared_ptr<torch::nn::Module> model() const = 0;

  // Default: one group of all parameters that take a gradient.
  virtual std::vector<ParameterGroup> parameter_groups() const;

  // The training loss of a batch. Draws that belong to a sample come from
  // `random` alone.
  virtual Loss loss(const Batch& batch, SampleRandom& random) = 0;

  // Adds the batch's metrics. Default: its loss, as "loss".
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
