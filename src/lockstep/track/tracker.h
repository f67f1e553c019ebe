// Records of a run, and the interface of what stores them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::track {

// `title` is the same at every step, so that viewers show its history:
// "samples/cfg2.5".
struct ImageRecord {
  std::string title = {};
  std::string png = {};  // The bytes of a PNG file.
};

struct TextNote {
  std::string title = {};
  std::string text = {};  // Markdown.
};

// A file of the run folder, such as an image of samples.
struct NamedFile {
  std::string name = {};  // Below the run folder.
  std::string bytes = {};
};

// Steps do not decrease; several records may belong to one step.
struct Record {
  int64_t step = 0;
  double unix_time = 0;  // Seconds.
  // "train/loss", "val/loss", "perf/samples_per_second".
  std::vector<std::pair<std::string, double>> metrics = {};
  std::vector<ImageRecord> images = {};
  std::vector<TextNote> texts = {};
  std::vector<NamedFile> files = {};
};

struct ConsoleText {
  double unix_time = 0;  // Seconds.
  bool is_error = false;
  std::string text = {};  // Whole lines, ending with a newline.
};

// What is kept of the records of a run that is resumed.
struct KeptRecords {
  int64_t last_step = 0;  // Records of later steps are dropped.
  // Records of the last step with a metric of this prefix are dropped too: that
  // work is redone. Empty: none.
  std::string redone = {};
};

// One kind of record: a file, or a folder of them. A constructor opens it and
// may throw; all other calls come from one thread, the recorder's (recorder.h).
// They throw IoError when something could not be written: what is on the disk
// stays readable, later calls go on behind it.
class Tracker {
 public:
  virtual ~Tracker() = default;

  // For messages: "metrics.jsonl", "wandb".
  virtual std::string name() const = 0;

  virtual void record(const Record& record) = 0;

  virtual void console(const ConsoleText& text);

  // About once a second, also while nothing is recorded.
  virtual void tick(double unix_time);

  // The last call: the run ended with this exit code.
  virtual void finish(int exit_code);
};

}  // namespace lockstep::track
