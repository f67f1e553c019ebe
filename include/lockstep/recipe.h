// A recipe: a training written for one process.
//
// It describes its settings and builds a task from them: data, model, loss and
// metrics. Processes, collectives, files, signals and records are handled by
// the trainer. Tutorial: docs/tutorial/adding-a-recipe.md.
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
  // Only data().validation is read; it may differ from that of the training.
  kEval,
  kSample,  // Sampling or Prediction: training data need not be opened.
  kPrepare,
};

class LOCKSTEP_EXPORT Recipe {
 public:
  virtual ~Recipe() = default;

  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // One line for help.

  // Adds its own settings, bound to members of the recipe; sets defaults of
  // common settings, file names and the checkpoint layout. Called once, before
  // the command line is read.
  virtual void describe(Settings& settings) = 0;

  // Called once, after the command line was read and torch's generator was
  // seeded: the model is initialised from it. It may set a setting that depends
  // on the data, such as the number of classes: it is saved with the run.
  // Throws ConfigError for a path without usable data.
  virtual std::unique_ptr<Task> build(const Settings& settings,
                                      Purpose purpose) = 0;
};

}  // namespace lockstep
