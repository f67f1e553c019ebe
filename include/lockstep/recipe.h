// A recipe: a training written for one process.
//
// It describes its settings and builds a task from them: data, model, loss and
// metrics. Processes, collectives, files, signals and records are the trainer's
// work. docs/adding-a-recipe.md writes one.
#pragma once

#include <memory>
#include <string>

#include "lockstep/export.h"
#include "lockstep/settings.h"
#include "lockstep/task.h"

namespace lockstep {

// What a task is built for: the commands of `lockstep`.
enum class Purpose {
  kTrain,
  kEval,    // Its validation data may be others than in training.
  kSample,  // Sampling or Prediction: training data need not be opened.
  kPrepare,
};

class LOCKSTEP_EXPORT Recipe {
 public:
  virtual ~Recipe() = default;

  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // One line for help.

  // Adds its own settings, which are variables of the recipe; sets defaults of
  // the common ones, file names and the layout of checkpoints. Called once,
  // before the command line is read.
  virtual void describe(Settings& settings) = 0;

  // Called once, after the command line was read and torch's generator was
  // seeded: the model is initialised from it. A setting that the data decide,
  // such as the number of classes, may be filled in: the run's files keep it.
  // Throws ConfigError for a path that does not hold the data.
  virtual std::unique_ptr<Task> build(const Settings& settings,
                                      Purpose purpose) = 0;
};

}  // namespace lockstep
