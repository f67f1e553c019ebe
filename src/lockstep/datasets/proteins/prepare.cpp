#include "lockstep/datasets/proteins/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/workers.h"
#include "lockstep/config/one_page_command.h"
#include "lockstep/datasets/proteins/open_sets.h"
#include "lockstep/error.h"
#include "lockstep/options.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "lockstep prepare protein --pdb_dir DIR --output_dir DIR [flags]";

void check_prepare_config(const proteins::ProteinPrepareConfig& config) {
  std::error_code error;
  if (config.pdb_dir.empty() || config.output_dir.empty()) {
    throw ConfigError(
        fmt::format("prepare protein needs --pdb_dir and --output_dir; "
                    "usage: {}",
                    kUsage));
  }
  if (!fs::is_directory(config.pdb_dir, error)) {
    throw ConfigError(
        fmt::format("--pdb_dir {}: no such folder", config.pdb_dir));
  }
  const double sum = config.train_ratio + config.val_ratio + config.test_ratio;
  if (std::abs(sum - 1) > 1e-6 || config.train_ratio == 0) {
    throw ConfigError(fmt::format(
        "--train_ratio, --val_ratio and --test_ratio are {}, {} and {}: they "
        "must add up to 1, with something to train on",
        config.train_ratio, config.val_ratio, config.test_ratio));
  }
}

bool is_mmcif_name(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz") name = name.stem();
  return name.extension() == ".cif" || name.extension() == ".mmcif";
}

// What became of one structure.
struct Outcome {
  std::string rejection = {};  // Empty: it is used.
  bool is_new = false;
  bool has_resolution = false;
};

class Preparation {
 public:
  explicit Preparation(const proteins::ProteinPrepareConfig& config)
      : config_(config) {}

  void run(const base::ShowProgress& progress);
  std::string summary() const;

 private:
  void find_structures();
  Outcome prepare_one(const fs::path& path) const;
  Outcome judge(const proteins::Protein& protein) const;
  void write_lists() const;

  const proteins::ProteinPrepareConfig& config_;
  std::vector<fs::path> files_;
  std::vector<Outcome> outcomes_;
  double seconds_ = 0;
};

void Preparation::find_structures() {
  files_ = proteins::list_structures(config_.pdb_dir);
  if (config_.use_mmcif) {
    std::erase_if(files_,
                  [](const fs::path& path) { return !is_mmcif_name(path); });
  }
  if (!files_.empty()) return;
  throw ConfigError(fmt::format(
      "--pdb_dir {}: the folder holds no {}", config_.pdb_dir,
      config_.use_mmcif
          ? "mmCIF files (.cif, .mmcif, with or without .gz); leave "
            "--use_mmcif out to take PDB files, too"
          : "structures (.pdb, .ent, .cif, .mmcif, with or without .gz)"));
}

Outcome Preparation::judge(const proteins::Protein& protein) const {
  Outcome outcome{.has_resolution = protein.resolution.value_or(0) > 0};
  if (protein.fragments.empty()) {
    outcome.rejection = "no side chain to predict";
  } else if (!config_.no_filter) {
    outcome.rejection = proteins::reason_against(protein, config_.filter)
                            .value_or(std::string());
  }
  return outcome;
}

Outcome Preparation::prepare_one(const fs::path& path) const {
  const fs::path file =
      fs::path(config_.output_dir) / (proteins::structure_name(path) + ".pt");
  if (proteins::is_up_to_date(file, path)) {
    try {
      const proteins::Protein old = proteins::read_protein_file(file);
      if (proteins::is_made_of(old.source, path) && old.resolution)
        return judge(old);
    } catch (const FormatError&) {
      // Damaged: it is made anew.
    }
  }
  try {
    const proteins::Protein protein =
        proteins::make_protein(proteins::read_structure(path), path);
    Outcome outcome = judge(protein);
    if (outcome.rejection.empty()) {
      proteins::write_protein_file(file, protein);
      outcome.is_new = true;
    }
    return outcome;
  } catch (const FormatError& error) {
    return {.rejection = error.what()};
  }
}

void Preparation::run(const base::ShowProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  find_structures();
  std::error_code error;
  fs::create_directories(config_.output_dir, error);
  if (error) {
    throw IoError(fmt::format("--output_dir {}: cannot be made: {}",
                              config_.output_dir, error.message()));
  }
  base::remove_leftovers(config_.output_dir);
  std::map<std::string, fs::path> first;
  for (const fs::path& path : files_) {
    first.emplace(proteins::structure_name(path), path);
  }
  outcomes_.resize(files_.size());
  const auto prepare = [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const fs::path& owner = first.at(proteins::structure_name(files_[at]));
    outcomes_[at] =
        owner == files_[at]
            ? prepare_one(files_[at])
            : Outcome{.rejection = "has the same name as " + owner.string()};
  };
  base::run_workers(std::ssize(files_), config_.num_workers, prepare, progress);
  write_lists();
  seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
}

// At least one each, where there are enough.
size_t part_of(size_t count, double ratio) {
  if (ratio == 0 || count == 0) return 0;
  return std::max<size_t>(
      1, static_cast<size_t>(ratio * static_cast<double>(count) + 1e-6));
}

void Preparation::write_lists() const {
  std::vector<std::string> names;
  std::string rejected;
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string name = proteins::structure_name(files_[i]);
    if (outcomes_[i].rejection.empty()) {
      names.push_back(name);
    } else {
      rejected += fmt::format("{}\t{}\n", files_[i].filename().string(),
                              outcomes_[i].rejection);
    }
  }
  const fs::path folder = config_.output_dir;
  base::write_file_atomically(folder / "rejected.txt", rejected);
  if (names.empty()) {
    throw ConfigError(fmt::format(
        "none of the {} structures of {} can be used; the reasons are in {}; "
        "--no_filter takes all that can be read",
        files_.size(), config_.pdb_dir, (folder / "rejected.txt").string()));
  }
  std::ranges::sort(names);
  RandomStream draw(static_cast<uint64_t>(config_.seed));
  draw.shuffle(names);
  // Something to train on comes first, then something to validate with.
  size_t left = names.size() - 1;
  const size_t validation =
      std::min(left, part_of(names.size(), config_.val_ratio));
  left -= validation;
  const size_t test = std::min(left, part_of(names.size(), config_.test_ratio));
  const std::span all(names);
  const auto write = [&](const char* list, std::span<const std::string> part) {
    base::write_file_atomically(
        folder / list, part.empty() ? "" : base::join(part, "\n") + "\n");
  };
  write("train.txt", all.subspan(validation + test));
  write("val.txt", all.first(validation));
  write("test.txt", all.subspan(validation, test));
}

std::string Preparation::summary() const {
  constexpr size_t kShown = 20;
  size_t written = 0;
  size_t without_resolution = 0;
  std::vector<std::string> rejected;
  for (size_t i = 0; i < files_.size(); ++i) {
    const Outcome& outcome = outcomes_[i];
    if (!outcome.rejection.empty()) {
      rejected.push_back(fmt::format(
          "  {}: {}\n", files_[i].filename().string(), outcome.rejection));
      continue;
    }
    if (outcome.is_new) ++written;
    if (!outcome.has_resolution) ++without_resolution;
  }
  const size_t used = files_.size() - rejected.size();
  std::string text = fmt::format(
      "{} structures in {} ({:.1f} structures/s): {} used ({} written, {} were "
      "up to date), {} rejected\n",
      files_.size(), base::duration_text(seconds_),
      static_cast<double>(files_.size()) / std::max(seconds_, 1e-9), used,
      written, used - written, rejected.size());
  if (!config_.no_filter && without_resolution > 0) {
    text += fmt::format(
        "{} state no resolution (NMR, models) and pass that filter\n",
        without_resolution);
  }
  for (size_t i = 0; i < std::min(kShown, rejected.size()); ++i) {
    text += rejected[i];
  }
  const fs::path folder = config_.output_dir;
  if (rejected.size() > kShown) {
    text += fmt::format("  ... all are in {}\n",
                        (folder / "rejected.txt").string());
  }
  return text + fmt::format(
                    "Train with: lockstep train protein --pdb_path {0} "
                    "--cache_dir {0}\n",
                    folder.string());
}

}  // namespace

std::optional<std::string> proteins::reason_against(
    const proteins::Protein& protein, const proteins::QualityFilter& filter) {
  const double resolution = protein.resolution.value_or(0);
  if (resolution > filter.max_resolution) {
    return fmt::format("resolution {:.2f} A is above {:.2f} A", resolution,
                       filter.max_resolution);
  }
  const int64_t length = protein.num_residues();
  if (length < filter.min_residues || length > filter.max_residues) {
    return fmt::format("{} residues, expected {} to {}", length,
                       filter.min_residues, filter.max_residues);
  }
  const int64_t breaks =
      proteins::count_chain_breaks(protein.backbone, filter.max_ca_distance);
  if (breaks > filter.max_breaks) {
    return fmt::format(
        "{} breaks of the chain (CA to CA above {:.2f} A), at "
        "most {} are allowed",
        breaks, filter.max_ca_distance, filter.max_breaks);
  }
  return {};
}

void proteins::describe_prepare_flags(Options& options,
                                      ProteinPrepareConfig& config) {
  options.add("pdb_dir", config.pdb_dir,
              "folder of structures, at any depth: .pdb, .ent, .cif, .mmcif, "
              "with or without .gz");
  options.add("output_dir", config.output_dir,
              "folder for {name}.pt and the lists");
  options.add("num_workers", config.num_workers, "threads",
              {.minimum = 0, .shown_default = "one per core, at most 16"});
  const OptionDetails ratio = {.minimum = 0, .maximum = 1};
  options.add("train_ratio", config.train_ratio, "part for train.txt", ratio);
  options.add("val_ratio", config.val_ratio, "part for val.txt", ratio);
  options.add("test_ratio", config.test_ratio, "part for test.txt", ratio);
  options.add("seed", config.seed, "decides which structure is in which list",
              {.minimum = 0});
  options.add("use_mmcif", config.use_mmcif,
              "take the mmCIF files of the folder only");
  const std::string group = "Quality filter";
  options.add("no_filter", config.no_filter, "take all that can be read",
              {.group = group});
  options.add("max_resolution", config.filter.max_resolution,
              "Angstrom; structures that state none (NMR, models) pass",
              {.minimum = 0, .group = group});
  options.add("min_residues", config.filter.min_residues, "shortest chain",
              {.minimum = 1, .group = group});
  options.add("max_residues", config.filter.max_residues, "longest chain",
              {.minimum = 1, .group = group});
  options.add("max_ca_distance", config.filter.max_ca_distance,
              "Angstrom from CA to CA; more is a break of the chain",
              {.minimum = 0, .group = group});
  options.add("max_breaks", config.filter.max_breaks, "breaks of a chain",
              {.minimum = 0, .group = group});
}

std::string proteins::prepare_protein(const std::vector<std::string>& arguments,
                                      const base::ShowProgress& progress) {
  ProteinPrepareConfig config;
  Options options;
  describe_prepare_flags(options, config);
  if (auto text = config::parse_one_page_command(options, arguments, kUsage)) {
    return *text;
  }
  check_prepare_config(config);
  Preparation preparation(config);
  preparation.run(progress);
  return preparation.summary();
}

}  // namespace lockstep
