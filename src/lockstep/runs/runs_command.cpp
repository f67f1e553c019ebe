#include "lockstep/runs/runs_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/workers.h"
#include "lockstep/error.h"
#include "lockstep/plot/terminal_text.h"
#include "lockstep/plot/value_text.h"
#include "lockstep/runs/run_curves.h"
#include "lockstep/runs/run_diff.h"
#include "lockstep/runs/run_files.h"
#include "lockstep/runs/run_json.h"
#include "lockstep/runs/run_search.h"

namespace lockstep::runs {
namespace {

namespace fs = std::filesystem;
using Row = std::vector<std::string>;

std::string age_text(int64_t then, int64_t now) {
  if (then <= 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, now - then);
  if (seconds < 60) return fmt::format("{} s ago", seconds);
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < int64_t{2} * 86400)
    return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

std::string time_text(int64_t time) {
  if (time <= 0) return "-";
  std::string text = base::local_timestamp(time).substr(0, 16);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string value_or_dash(const std::optional<double>& value) {
  return value ? plot::value_text(*value) : "-";
}

std::string step_text(const RunSummary& run) {
  if (!run.step) return "-";
  return run.info.total_steps > 0
             ? fmt::format("{}/{}", *run.step, run.info.total_steps)
             : std::to_string(*run.step);
}

std::string best_text(const RunSummary& run) {
  if (!run.best) return "-";
  const size_t slash = run.best_name.find('/');
  return fmt::format("{} {}", plot::value_text(run.best->value),
                     run.best_name.substr(slash + 1));
}

// Columns as wide as their longest cell; the first `num_left` are aligned left.
std::string table_text(const std::vector<Row>& rows, size_t num_left) {
  std::vector<size_t> widths(rows.at(0).size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i < num_left ? fmt::format("{:<{}}  ", row[i], widths[i])
                           : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::vector<RunSummary> read_all(const FolderTree& tree,
                                 const std::vector<std::string>& ids,
                                 int64_t now) {
  const LockTable locks = LockTable::of_machine();
  std::vector<RunSummary> runs(ids.size());
  base::run_workers(static_cast<int64_t>(ids.size()), 0, [&](int64_t i) {
    runs[static_cast<size_t>(i)] =
        RunWatcher(ids[static_cast<size_t>(i)]).update(tree, locks, now);
  });
  return runs;
}

std::string list_text(const std::vector<RunSummary>& runs, int64_t now) {
  std::vector<Row> rows = {{"RUN", "RECIPE", "STATE", "STEP", "LOSS", "BEST",
                            "SAMPLES/S", "STARTED", "LAST SIGN"}};
  for (const RunSummary& run : runs) {
    rows.push_back(
        {base::printable_line(run.id), base::printable_line(run.info.recipe),
         state_name(run.state), step_text(run), value_or_dash(run.loss),
         best_text(run), value_or_dash(run.samples_per_second),
         time_text(run.info.started), age_text(run.last_sign, now)});
  }
  return table_text(rows, 3);
}

fs::path listed_folder(const RunsOptions& options) {
  if (!options.folders.empty()) return options.folders[0];
  return base::is_folder("runs") ? "runs" : ".";
}

std::string list_runs(const RunsOptions& options, int64_t now) {
  const FolderTree tree(listed_folder(options));
  const FoundRuns found = find_runs(tree);
  std::vector<RunSummary> runs = read_all(tree, found.ids, now);
  // The newest first; those without a start at the end.
  std::sort(runs.begin(), runs.end(),
            [](const RunSummary& a, const RunSummary& b) {
              return std::tuple(-a.info.started, a.id) <
                     std::tuple(-b.info.started, b.id);
            });
  if (options.json) {
    std::vector<std::string> items;
    items.reserve(runs.size());
    for (const RunSummary& run : runs) items.push_back(summary_json(run));
    return json_list(items) + "\n";
  }
  if (runs.empty()) {
    throw ConfigError(fmt::format(
        "{} holds no run; lockstep train RECIPE --save_dir {} starts one",
        tree.root().string(), (tree.root() / "NAME").string()));
  }
  return list_text(runs, now) +
         (found.is_complete ? ""
                            : "more runs are not shown: name a folder below\n");
}

FolderTree open_run(const fs::path& folder) {
  FolderTree tree(folder);
  const FoundRuns found = find_runs(tree);
  if (found.ids != std::vector<std::string>{"."}) {
    throw ConfigError(fmt::format(
        "{} is not a run folder{}", folder.string(),
        found.ids.empty()
            ? ": name the --save_dir of a training"
            : "; lockstep runs " + folder.string() + " lists the runs in it"));
  }
  return tree;
}

std::string ranks_text(const std::vector<RankRow>& rows) {
  std::vector<Row> table = {{"RANK", "HEALTH", "DOES", "STEP", "DATA MS",
                             "COMPUTE MS", "EXCHANGE MS", "MEMORY",
                             "COLLECTIVES"}};
  for (const RankRow& row : rows) {
    const base::RankStatus& rank = row.page.rank;
    std::array<std::string, 3> ms = {"-", "-", "-"};
    if (row.page.training && row.page.training->times.num_steps > 0) {
      const base::StepSeconds& times = row.page.training->times;
      const double scale = 1e3 / static_cast<double>(times.num_steps);
      ms = {fmt::format("{:.2f}", scale * times.data),
            fmt::format("{:.2f}", scale * times.compute),
            fmt::format("{:.2f}", scale * times.exchange)};
    }
    table.push_back({std::to_string(rank.rank), health_name(row.health),
                     base::phase_name(rank.phase), std::to_string(rank.step),
                     ms[0], ms[1], ms[2],
                     base::bytes_text(rank.device_bytes > 0 ? rank.device_bytes
                                                            : rank.host_bytes),
                     std::to_string(rank.collectives_started)});
  }
  std::string text = "\n" + table_text(table, 3);
  for (const RankRow& row : rows) {
    if (row.note.empty()) continue;
    text += fmt::format("rank {}: {}\n", row.page.rank.rank, row.note);
  }
  return text;
}

std::string curve_text(const FolderTree& tree, const std::string& title,
                       const plot::TerminalAbility& terminal) {
  RunCurves curves(".");
  curves.update(tree);
  const plot::Series* loss = curves.find("train/loss");
  if (loss == nullptr) return "";
  return "\n" + plot::text_curve(base::printable_line(title), *loss, terminal);
}

std::string show_run(const RunsOptions& options,
                     const plot::TerminalAbility& terminal, int64_t now) {
  const FolderTree tree = open_run(options.folders[0]);
  const RunSummary run =
      RunWatcher(".").update(tree, LockTable::of_machine(), now);
  const std::vector<RankRow> ranks = run.state == RunState::kRunning
                                         ? read_ranks(run.info)
                                         : std::vector<RankRow>{};
  if (options.json) {
    return fmt::format("{{\"run\":{},\"ranks\":{}}}\n", summary_json(run),
                       ranks_json(ranks));
  }
  const auto line = [](const char* name, const std::string& value) {
    return fmt::format("{:<10}  {}\n", name, base::printable_line(value));
  };
  std::string text = line("run", tree.root().string()) +
                     line("recipe", run.info.recipe) +
                     line("state", state_name(run.state));
  if (!run.reason.empty()) text += line("ended", run.reason);
  if (!run.verdict.cause.empty()) {
    text += line("verdict", run.verdict.cause + ": " + run.verdict.meaning) +
            line("shown by", run.verdict.evidence) +
            line("next", run.verdict.next);
  }
  text += line("step", step_text(run)) + line("loss", value_or_dash(run.loss));
  if (run.best) {
    text += line("best",
                 fmt::format("{} at step {}", best_text(run), run.best->step));
  }
  text += line("samples/s", value_or_dash(run.samples_per_second)) +
          line("started", time_text(run.info.started)) +
          line("last sign", age_text(run.last_sign, now));
  if (!run.info.host.empty()) {
    text += line("processes", fmt::format("{} on {}", run.info.num_processes,
                                          run.info.host));
  }
  if (!ranks.empty()) text += ranks_text(ranks);
  return text + curve_text(tree, "train/loss", terminal);
}

NamedSettings settings_of(const FolderTree& run) {
  const auto text = run.read(kConfigFile, kMostConfigBytes);
  if (!text) return {};
  return named_settings(*text, (run.root() / kConfigFile).string());
}

std::string losses_text(const LossComparison& losses) {
  if (losses.num_common == 0) {
    return "the runs have no step in common with a train/loss\n";
  }
  if (!losses.first_difference) {
    return fmt::format("losses are equal at all {} common steps, up to {}\n",
                       losses.num_common, losses.last_common);
  }
  const auto at = [](const LossDifference& here) {
    return fmt::format("step {}: {} and {}", here.step, here.first,
                       here.second);
  };
  return fmt::format(
      "losses part at {}\n{}\n", at(*losses.first_difference),
      losses.first_notable
          ? "they differ by more than 1% at " + at(*losses.first_notable)
          : fmt::format("they stay within 1% up to step {}",
                        losses.last_common));
}

std::string differences_text(const std::vector<SettingDifference>& all) {
  if (all.empty()) return "all settings are equal\n";
  std::vector<Row> rows = {{"SETTING", "FIRST", "SECOND"}};
  for (const SettingDifference& one : all) {
    rows.push_back({base::printable_line(one.name),
                    base::printable_line(one.first.value_or("(none)")),
                    base::printable_line(one.second.value_or("(none)"))});
  }
  return table_text(rows, 3);
}

std::string difference_json(const std::optional<LossDifference>& one) {
  if (!one) return "null";
  return fmt::format("{{\"step\":{},\"first\":{},\"second\":{}}}", one->step,
                     json_number(one->first), json_number(one->second));
}

std::string diff_json(const std::vector<SettingDifference>& settings,
                      const LossComparison& losses) {
  std::vector<std::string> items;
  items.reserve(settings.size());
  for (const SettingDifference& one : settings) {
    items.push_back(fmt::format("{{\"name\":{},\"first\":{},\"second\":{}}}",
                                json_text(one.name),
                                one.first ? json_text(*one.first) : "null",
                                one.second ? json_text(*one.second) : "null"));
  }
  return fmt::format(
      "{{\"settings\":{},\"loss\":{{\"common_steps\":{},\"last_common\":{},"
      "\"first_difference\":{},\"first_beyond_1_percent\":{}}}}}\n",
      json_list(items), losses.num_common, losses.last_common,
      difference_json(losses.first_difference),
      difference_json(losses.first_notable));
}

std::string diff_runs(const RunsOptions& options,
                      const plot::TerminalAbility& terminal) {
  const FolderTree first = open_run(options.folders[0]);
  const FolderTree second = open_run(options.folders[1]);
  std::vector<SettingDifference> settings =
      compare_settings(settings_of(first), settings_of(second));
  // The folder differs always.
  std::erase_if(settings, [](const SettingDifference& one) {
    return one.name == "save_dir";
  });
  const LossComparison losses = compare_losses(first, second);
  if (options.json) return diff_json(settings, losses);
  const std::string a = first.root().string();
  const std::string b = second.root().string();
  return fmt::format("first:  {}\nsecond: {}\n\n", base::printable_line(a),
                     base::printable_line(b)) +
         differences_text(settings) + "\n" + losses_text(losses) +
         curve_text(first, "train/loss of " + a, terminal) +
         curve_text(second, "train/loss of " + b, terminal) +
         fmt::format(
             "\nlockstep plot {} {} -o compared.png draws all metrics\n",
             base::printable_line(a), base::printable_line(b));
}

}  // namespace

std::string run_runs_command(const RunsOptions& options,
                             const plot::TerminalAbility& terminal,
                             int64_t now) {
  switch (options.action) {
    case RunsAction::kList: return list_runs(options, now);
    case RunsAction::kShow: return show_run(options, terminal, now);
    case RunsAction::kDiff: return diff_runs(options, terminal);
  }
  return "";
}

}  // namespace lockstep::runs
