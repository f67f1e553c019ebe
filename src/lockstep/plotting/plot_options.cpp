#include "lockstep/plotting/plot_options.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/plot/comparison.h"

namespace lockstep::plotting {
namespace {

constexpr const char* kPlotHelp =
    R"(usage: lockstep plot RUN [RUN...] [-o FILE.png|FILE.svg] [--metrics NAME,...] [--title TEXT]

One run: its loss, beside the newest images that it sampled, with the names of
their classes; without such images all of its curves. Several runs: a panel for
each metric that all of them recorded, with one curve per run.

  RUN                  a run folder (--save_dir of lockstep train)
  -o, --output FILE    write the plot as PNG or SVG, by the file's ending
  --metrics NAME,...   several runs: these metrics instead, such as
                       train/loss,val/accuracy
  --title TEXT         title of the plot
  -h, --help           print this text

In a terminal the plot is also shown there: as an image (kitty, Ghostty, iTerm2,
WezTerm, mintty), elsewhere in letters.
)";

// Splits "--output=x" and takes the next word for "--output x".
class Words {
 public:
  explicit Words(std::span<const std::string> words) : words_(words) {}

  bool next() {
    if (at_ == words_.size()) return false;
    word_ = words_[at_++];
    value_.reset();
    const size_t equals = word_.find('=');
    if (word_.starts_with("--") && equals != std::string::npos) {
      value_ = word_.substr(equals + 1);
      word_.resize(equals);
    }
    return true;
  }

  const std::string& word() const { return word_; }

  std::string value() {
    if (value_) return *value_;
    if (at_ < words_.size()) return words_[at_++];
    throw ConfigError(word_ + ": a value is missing; see lockstep plot --help");
  }

 private:
  std::span<const std::string> words_;
  size_t at_ = 0;
  std::string word_ = {};
  std::optional<std::string> value_ = {};
};

void check_output(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".png" || ending == ".svg") return;
  throw ConfigError(fmt::format(
      "--output {}: the file's name must end in .png or .svg", path.string()));
}

// Without a separator at the end: names of runs are compared and shown.
std::filesystem::path run_path(const std::string& word) {
  std::string path = word;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

void check_plot_options(const PlotOptions& options) {
  if (options.runs.empty()) {
    throw ConfigError("name a run folder: lockstep plot runs/NAME -o FILE.png");
  }
  if (options.runs.size() > plot::kMostRuns) {
    throw ConfigError(
        fmt::format("{} runs; at most {} can be told apart in one plot",
                    options.runs.size(), plot::kMostRuns));
  }
  if (options.runs.size() == 1 && !options.metrics.empty()) {
    throw ConfigError("--metrics is for plots of several runs");
  }
  if (options.output) check_output(*options.output);
}

}  // namespace

PlotOptions parse_plot_options(std::span<const std::string> arguments) {
  PlotOptions options;
  Words words(arguments);
  while (words.next()) {
    const std::string& word = words.word();
    if (word == "--help" || word == "-h") {
      options.help = true;
      return options;
    }
    if (word == "--output" || word == "-o") {
      options.output = words.value();
    } else if (word == "--metrics") {
      for (const std::string& name : base::split(words.value(), ',')) {
        if (!name.empty()) options.metrics.push_back(name);
      }
    } else if (word == "--title") {
      options.title = words.value();
    } else if (word.starts_with('-') && word != "-") {
      throw ConfigError(
          fmt::format("unknown option {}; see lockstep plot --help", word));
    } else {
      options.runs.push_back(run_path(word));
    }
  }
  check_plot_options(options);
  return options;
}

std::string plot_help() { return kPlotHelp; }

}  // namespace lockstep::plotting
