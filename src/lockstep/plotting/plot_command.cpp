#include "lockstep/plotting/plot_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/printable.h"
#include "lockstep/error.h"
#include "lockstep/plot/comparison.h"
#include "lockstep/plot/plot.h"
#include "lockstep/plot/raster.h"
#include "lockstep/plot/sample_card.h"
#include "lockstep/plot/svg.h"
#include "lockstep/plot/terminal_text.h"
#include "lockstep/plot/value_text.h"
#include "lockstep/plotting/metric_choice.h"
#include "lockstep/plotting/run_reader.h"

namespace lockstep::plotting {
namespace {

using plot::TerminalAbility;

// A plot and what stands for it where images cannot be shown.
struct Plotted {
  plot::Drawing drawing = {};
  std::string text = {};
};

Plotted plot_one(const PlotOptions& options, const plot::Font& font,
                 const TerminalAbility& terminal) {
  ReadRun run = read_run(options.runs[0]);
  if (!options.title.empty()) run.curves.title = options.title;
  const auto samples = newest_samples(options.runs[0]);
  const std::string curve =
      plot::text_curve("train/loss", run.curves.train_loss, terminal);
  if (!samples) {
    return {.drawing = plot::draw_run(run.curves, font), .text = curve};
  }
  return {.drawing = plot::draw_sample_card(run.curves, *samples, font),
          .text = plot::text_samples(*samples, terminal) + curve};
}

// Last values: a line per run, below each metric.
std::string values_table(const plot::Comparison& comparison) {
  std::string text;
  for (const plot::ComparedMetric& metric : comparison.metrics) {
    text += base::printable_line(metric.title) + "\n";
    for (size_t i = 0; i < comparison.runs.size(); ++i) {
      const plot::Series& series = metric.runs[i];
      text +=
          fmt::format("  {:>12}  {}\n",
                      series.last() ? plot::value_text(series.last()->y) : "-",
                      base::printable_line(comparison.runs[i]));
    }
  }
  return text;
}

Plotted plot_several(const PlotOptions& options, const plot::Font& font) {
  std::vector<ReadRun> runs;
  runs.reserve(options.runs.size());
  for (const auto& folder : options.runs) runs.push_back(read_run(folder));
  plot::Comparison comparison{.title = options.title.empty()
                                           ? fmt::format("{} runs", runs.size())
                                           : options.title};
  for (const ReadRun& run : runs) {
    comparison.runs.push_back(run.folder.string());
  }
  for (const std::string& name : choose_metrics(runs, options.metrics)) {
    plot::ComparedMetric metric{.title = metric_title(name),
                                .axis = metric_axis(name)};
    for (const ReadRun& run : runs) {
      const plot::Series* series = find_series(run, name);
      metric.runs.push_back(series != nullptr ? *series : plot::Series{});
    }
    comparison.metrics.push_back(std::move(metric));
  }
  return {.drawing = plot::draw_comparison(comparison, font),
          .text = values_table(comparison)};
}

// For letters that a PNG file shows as question marks.
std::string font_warning(const plot::Drawing& drawing, const plot::Font& font) {
  std::string texts;
  for (const plot::Shape& shape : drawing.shapes) {
    if (const auto* label = std::get_if<plot::Label>(&shape)) {
      texts += label->text;
    }
  }
  const std::string missing = font.missing(texts);
  if (missing.empty()) return "";
  return fmt::format(
      "no font on this machine has {}: question marks stand for them; "
      "apt-get install fonts-noto-cjk has the letters of East Asia, and an "
      ".svg "
      "file leaves the choice of fonts to its viewer",
      missing);
}

}  // namespace

PlotOutput plot_runs(const PlotOptions& options,
                     const std::optional<TerminalAbility>& terminal) {
  const plot::Font font;
  const TerminalAbility letters = terminal.value_or(TerminalAbility{});
  const Plotted plotted = options.runs.size() == 1
                              ? plot_one(options, font, letters)
                              : plot_several(options, font);
  if (!options.output && !terminal) {
    throw ConfigError(
        "stdout is not a terminal, which could show the plot: name a file with "
        "-o FILE.png or -o FILE.svg");
  }
  const bool shows_image =
      terminal && terminal->images != plot::TerminalImages::kNone;
  const bool is_svg = options.output && options.output->extension() == ".svg";
  const bool needs_png = (options.output && !is_svg) || shows_image;
  const std::string png =
      needs_png ? plot::to_png(plotted.drawing, font) : std::string();
  PlotOutput output;
  if (needs_png) output.warning = font_warning(plotted.drawing, font);
  if (shows_image) {
    output.text =
        plot::terminal_image(png, terminal->images, terminal->columns);
  } else if (terminal) {
    output.text = plotted.text;
  }
  if (options.output) {
    base::write_file_atomically(*options.output,
                                is_svg ? plot::to_svg(plotted.drawing) : png);
    output.text += base::printable_line(options.output->string()) + "\n";
  }
  return output;
}

}  // namespace lockstep::plotting
