// A recipe: a training written for one process.
//
// It knows its settings, data, model, loss and metrics. Processes, collectives,
// files, signals and records belong to the rest of train/, which turns a recipe
// into a training on any number of processes. docs/adding-a-recipe.md builds
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/checkpoint_keys.h"
#include "lockstep/dataset.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/export.h"
#include "lockstep/loss.h"
#include "lockstep/metrics.h"
#include "lockstep/optimizer.h"
#include "lockstep/options.h"
#include "lockstep/random.h"
#include "lockstep/train_config.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

struct DataSets {
  std::shared_ptr<const Dataset> train = {};
  std::shared_ptr<const Dataset> validation = {};  // Null: none.
  // What generated images are measured against, as they are: samples begin
  // with uint8 [3, S, S]. Null: none.
  std::shared_ptr<const Dataset> reference = {};
};

// How much of a rank's share of a work is done.
struct CacheProgress {
  int64_t done = 0;
  int64_t total = 0;
};

enum class Better { kLower, kHigher };

// "{step}" and "{epoch}" stand for numbers.
struct FileNames {
  std::string checkpoint = "checkpoint_step_{step}.pt";
  // Of the end of an epoch, where that has a name of its own.
  std::string epoch_checkpoint = {};
  std::string best = "best_model.pt";
  std::string log = "train.log";
  // Always the newest checkpoint under one name, too; empty: none.
  std::string last = {};
};

// Of the batches of a training.
enum class BatchShapes {
  kDefault,
  kStatic,   // cuDNN may try which of its kernels are fast for them.
  kDynamic,  // Nothing is compiled for a shape, as cuDNN's attention would be.
};

// What a recipe is, apart from its settings.
struct TaskInfo {
  std::string name = {};
  std::string summary = {};  // One line for help.
  // What is trained on what, for the start of a run: "JiT-B/4 on text".
  std::string subject = {};
  FileNames files = {};
  CheckpointKeys keys = {};
  // The metric that chooses the best model, and which way.
  std::string best_metric = "loss";
  Better better = Better::kLower;
  // What to try when memory runs out, in the guide's flags, best first.
  std::vector<std::string> memory_remedies = {};
  // Nets that the model builds on and that no checkpoint holds: what is meant
  // ("vggt") and the hash of its weights. A checkpoint of others is refused.
  std::vector<std::pair<std::string, std::string>> frozen = {};
  // Some parameters take no part in some steps.
  bool has_unused_parameters = false;
  BatchShapes shapes = BatchShapes::kDefault;
  // Its SyncBatchNorms take the statistics of all ranks together.
  bool sync_batch_norm = false;
  // How large a normaliser one sample gives, about: 1 for samples.
  double normaliser_per_sample = 1;
  // Of forward and backward together; 0: not known.
  double flops_per_sample = 0;
  // Images (or other items) of one sampling; 0: this recipe cannot sample.
  int64_t num_sample_items = 0;
  // The user's own images (or other inputs) that `lockstep sample` works on,
  // in place of a sampling; see Recipe::predict().
  int64_t num_inputs = 0;
  // While training, samplings are made with every moving average, too.
  bool samples_averages = false;
  // Images to generate for a score (FID); 0: this recipe has none.
  int64_t num_scored_items = 0;
};

struct OutputFile {
  // Below the run folder. "{step}" stands for a number, "{weights}" for those
  // that the sampling was made with: nothing, "_ema", "_ema2", ...
  std::string name = {};
  std::string bytes = {};
  // What trackers call it, the same at every step; "{weights}" allowed.
  std::string title = "samples";
  // A text that `lockstep sample` on one input shows, too.
  bool is_shown = false;
};

class LOCKSTEP_EXPORT Recipe {
 public:
  virtual ~Recipe() = default;

  // Adds its own settings, sets the defaults of the common ones, names its own
  // words for them. Called once, before the command line is read.
  virtual void describe(Options& options, TrainConfig& common) = 0;

  // After the command line is read: defaults that depend on other settings.
  // What was given stays. May be called again.
  virtual void resolve_defaults(const Options& options, TrainConfig& common);

  // After the command line is read; what depends on the data (the number of
  // items to sample) is right after open_data().
  virtual TaskInfo facts() const = 0;

  // Throws ConfigError for a path that does not hold the data.
  virtual DataSets open_data(const TrainConfig& common) = 0;

  // In place of open_data() for `lockstep eval`, whose validation data may be
  // others than those of a training. Default: opens the data.
  virtual DataSets open_eval_data(const TrainConfig& common);

  // In place of open_data() when samples are all that is wanted. Default:
  // opens the data.
  virtual void prepare_sampling(const TrainConfig& common);

  // The recipe keeps it for loss(), evaluate() and sample(). Initialised from
  // torch's default generator; moved to the device by the caller.
  virtual std::shared_ptr<torch::nn::Module> make_model() = 0;

  // Work on the data that ranks share and that later runs find done: features
  // of nets that do not learn. Called on all ranks, again and again until every
  // one has done its share; does some seconds of it. The model is on its
  // device already. Default: there is nothing to do.
  virtual CacheProgress fill_cache(const Shard& share);

  // Default: one group of all parameters that take a gradient.
  virtual std::vector<ParameterGroup> parameter_groups(
      torch::nn::Module& model);

  // The training loss of a batch. Draws that belong to a sample come from
  // `random` alone.
  virtual Loss loss(const Batch& batch, SampleRandom& random) = 0;

  // Adds the batch's metrics. Default: its loss, as "loss".
  virtual void evaluate(const Batch& batch, SampleRandom& random,
                        MetricSums& sums);

  // Metrics that follow from counts of all batches and ranks, such as those of
  // a confusion matrix. Default: none.
  virtual Metrics derive(const MetricCounts& counts);

  // What `lockstep eval` writes besides its output, from rank 0 alone. Default:
  // nothing.
  virtual std::vector<OutputFile> result_files(const Metrics& metrics);

  // Items `items` of a sampling, first dimension one row per item: each depends
  // on its number and the draws alone.
  virtual at::Tensor sample(std::span<const int64_t> items,
                            SampleRandom& random);

  // Turns all items of a sampling into files.
  virtual std::vector<OutputFile> render(const at::Tensor& items);

  // What `lockstep sample` makes of one of the user's inputs. Ranks share the
  // inputs, and each writes the files of its own.
  virtual std::vector<OutputFile> predict(int64_t input);

  // Images that shall look like those of DataSets::reference: uint8
  // [B, 3, S, S], one per item.
  virtual at::Tensor generate(std::span<const int64_t> items,
                              SampleRandom& random);

  // Whether `lockstep prepare` with these arguments takes them as settings of a
  // training and does its fill_cache(), in place of prepare(). Default: no.
  virtual bool prepares_by_settings(
      const std::vector<std::string>& arguments) const;

  // `lockstep prepare`: makes data ready once, before training. Returns what it
  // did, for the console. Default: there is nothing to prepare.
  virtual std::string prepare(
      const std::vector<std::string>& arguments,
      const std::function<void(int64_t done, int64_t total)>& progress);
};

}  // namespace lockstep
