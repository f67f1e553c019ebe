#include "lockstep/datasets/proteins/open_sets.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/workers.h"
#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep::proteins {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBuiltin = "builtin:protein";
constexpr int64_t kGeneratedToTrain = 200;
constexpr int64_t kGeneratedValidationChains = 30;
constexpr size_t kNamed = 5;  // Names in one message.

std::string remedy(const std::string& folder) {
  return fmt::format(
      "make one of structures (.pdb, .ent, .cif, with or without .gz) with: "
      "lockstep prepare protein --pdb_dir STRUCTURES --output_dir {}; or use "
      "generated proteins: {}",
      folder, kBuiltin);
}

std::string named(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamed);
  std::string text = base::join(std::span(names).first(shown), ", ");
  if (shown < names.size()) {
    text += fmt::format(" and {} more", names.size() - shown);
  }
  return text;
}

std::vector<fs::path> list_cache_files(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".pt") files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("cannot read {}: {}", folder.string(),
                              error.code().message()));
  }
  std::ranges::sort(files);
  return files;
}

bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return !b.empty() && fs::equivalent(a, b, error) && !error;
}

// Structures before .pt files, unless these are named as the cache.
std::vector<fs::path> find_files(const fs::path& path,
                                 const std::string& cache_dir) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  const bool is_cache = is_same_folder(path, cache_dir);
  std::vector<fs::path> files;
  if (!is_cache) files = list_structures(path);
  if (files.empty()) files = list_cache_files(path);
  return files;
}

void check_names(const std::vector<fs::path>& files) {
  std::map<std::string, fs::path> paths;
  for (const fs::path& file : files) {
    const auto [other, is_new] = paths.emplace(structure_name(file), file);
    if (is_new) continue;
    throw ConfigError(
        fmt::format("{} and {} have the same name; names must differ, for they "
                    "are those of "
                    "the cache and of train.txt: rename or remove one",
                    other->second.string(), file.string()));
  }
}

// Reads the facts of each file.
class Opening {
 public:
  Opening(const ProteinDataConfig& config, std::vector<fs::path> files)
      : config_(config), files_(std::move(files)), entries_(files_.size()) {}

  void run() {
    // Each process begins elsewhere: together they fill a cache in one round.
    const int64_t count = std::ssize(files_);
    const auto begin = static_cast<int64_t>(
        mix_bits(static_cast<uint64_t>(::getpid())) % uint64_t(count));
    base::run_workers(count, config_.num_threads, [&](int64_t i) {
      const auto at = static_cast<size_t>((begin + i) % count);
      entries_[at] = files_[at].extension() == ".pt"
                         ? open_cache_file(files_[at])
                         : open_structure(files_[at]);
    });
  }

  std::vector<std::optional<ProteinEntry>> take_entries() {
    return std::move(entries_);
  }
  std::vector<std::string> notes();

 private:
  std::optional<ProteinEntry> judge(const fs::path& path,
                                    const ProteinFacts& facts);
  std::optional<ProteinEntry> open_cache_file(const fs::path& path);
  std::optional<ProteinEntry> open_structure(const fs::path& path);
  bool save(const fs::path& cache, const Protein& protein);
  void note(std::vector<std::string>& names, std::string name) {
    const std::scoped_lock lock(mutex_);
    names.push_back(std::move(name));
  }

  const ProteinDataConfig& config_;
  std::vector<fs::path> files_;
  std::vector<std::optional<ProteinEntry>> entries_;
  std::mutex mutex_;
  // All below are guarded by mutex_.
  std::vector<std::string> empty_;
  std::vector<std::string> long_;
  std::vector<std::string> unreadable_;  // The reasons.
  std::vector<std::string> unaligned_;
  std::vector<std::string> unsaved_;  // The reasons.
};

// No value: it is left out.
std::optional<ProteinEntry> Opening::judge(const fs::path& path,
                                           const ProteinFacts& facts) {
  if (facts.num_fragments == 0) {
    note(empty_, structure_name(path));
    return {};
  }
  if (facts.num_residues > config_.max_residues) {
    note(long_, structure_name(path));
    return {};
  }
  if (!facts.has_aligned_torsions) note(unaligned_, structure_name(path));
  return ProteinEntry{.path = path,
                      .length = facts.num_residues + facts.num_fragments};
}

std::optional<ProteinEntry> Opening::open_cache_file(const fs::path& path) {
  try {
    return judge(path, read_protein_facts(path));
  } catch (const FormatError&) {
    return ProteinEntry{.path = path};
  }
}

std::optional<ProteinEntry> Opening::open_structure(const fs::path& path) {
  const fs::path cache =
      config_.cache_dir.empty()
          ? fs::path()
          : fs::path(config_.cache_dir) / (structure_name(path) + ".pt");
  if (!cache.empty() && is_up_to_date(cache, path)) {
    try {
      const ProteinFacts facts = read_protein_facts(cache);
      if (is_made_of(facts.source, path)) return judge(cache, facts);
    } catch (const FormatError&) {
      // Damaged: it is made anew.
    }
  }
  try {
    Protein protein = make_protein(read_structure(path), path);
    auto entry = judge(path, {.source = {},
                              .num_residues = protein.num_residues(),
                              .num_fragments = std::ssize(protein.fragments)});
    if (!cache.empty() && save(cache, protein)) {
      if (entry) entry->path = cache;
    } else if (entry) {
      entry->kept = std::make_shared<const Protein>(std::move(protein));
    }
    return entry;
  } catch (const FormatError& error) {
    note(unreadable_, error.what());
    return {};
  }
}

bool Opening::save(const fs::path& cache, const Protein& protein) {
  try {
    write_protein_file(cache, protein);
    return true;
  } catch (const IoError& error) {
    note(unsaved_, error.what());
    return false;
  }
}

std::vector<std::string> Opening::notes() {
  std::vector<std::string> notes;
  const auto say = [&](std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    std::ranges::sort(names);  // Threads found them in any order.
    notes.push_back(fmt::format("{} of {} structures {}: {}", names.size(),
                                files_.size(), what, named(names)));
  };
  say(empty_, "have no side chain to predict and are left out");
  say(long_, fmt::format("are longer than {} residues and are left out",
                         config_.max_residues));
  say(unreadable_, "cannot be read and are left out");
  say(unaligned_,
      "do not say which residues their torsions belong to, so that these are "
      "not scored (make the files anew with `lockstep prepare protein`)");
  say(unsaved_, "could not be written to --cache_dir and stay in memory");
  return notes;
}

// The names of a list; no value: the file does not exist.
std::optional<std::vector<std::string>> read_list(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  std::vector<std::string> names;
  for (const std::string& line : base::split(base::read_file(path), '\n')) {
    const std::string_view name = base::trim(line);
    if (!name.empty()) names.push_back(structure_name(fs::path(name)));
  }
  return names;
}

using Entries = std::map<std::string, std::optional<ProteinEntry>>;

std::shared_ptr<const ProteinSet> set_of(const std::vector<std::string>& names,
                                         const Entries& entries) {
  std::vector<ProteinEntry> used;
  for (const std::string& name : names) {
    if (entries.at(name)) used.push_back(*entries.at(name));
  }
  if (used.empty()) return nullptr;
  return std::make_shared<ProteinFiles>(std::move(used));
}

struct Lists {
  std::vector<std::string> train = {};
  std::vector<std::string> validation = {};
  std::vector<std::string> test = {};
};

// No value: the folder has no lists.
std::optional<Lists> read_lists(const fs::path& folder) {
  const auto train = read_list(folder / "train.txt");
  const auto validation = read_list(folder / "val.txt");
  if (!train && !validation) return {};
  if (!train || !validation) {
    throw ConfigError(fmt::format(
        "{} has {} but not {}: both are needed, or none (then --val_split of "
        "the names is held back)",
        folder.string(), train ? "train.txt" : "val.txt",
        train ? "val.txt" : "train.txt"));
  }
  return Lists{.train = *train,
               .validation = *validation,
               .test = read_list(folder / "test.txt").value_or(Lists().test)};
}

void check_lists(const Lists& lists, const Entries& entries,
                 const fs::path& folder) {
  std::vector<std::string> missing;
  std::set<std::string> seen;
  for (const auto* names : {&lists.train, &lists.validation, &lists.test}) {
    for (const std::string& name : *names) {
      if (!entries.contains(name)) missing.push_back(name);
      if (seen.insert(name).second) continue;
      throw ConfigError(fmt::format(
          "{} is more than once in train.txt, val.txt and test.txt of {}: what "
          "is trained on would also be judged by",
          name, folder.string()));
    }
  }
  if (missing.empty()) return;
  throw ConfigError(fmt::format(
      "{} names of train.txt, val.txt and test.txt of {} have no file there: "
      "{}; correct the lists, or run `lockstep prepare protein` again",
      missing.size(), folder.string(), named(missing)));
}

Lists hold_back(const ProteinDataConfig& config, const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) {
    if (entry) names.push_back(name);
  }
  RandomStream draw(config.seed);
  draw.shuffle(names);
  const auto count = static_cast<double>(names.size());
  auto held = static_cast<std::ptrdiff_t>(config.val_split * count);
  if (held == 0 && config.val_split > 0 && names.size() > 1) held = 1;
  Lists lists{.validation = {names.begin(), names.begin() + held}, .test = {}};
  lists.train.assign(names.begin() + held, names.end());
  std::ranges::sort(lists.train);
  std::ranges::sort(lists.validation);
  return lists;
}

Lists make_lists(const ProteinDataConfig& config, const Entries& entries) {
  for (const std::string& folder : {config.pdb_path, config.cache_dir}) {
    if (folder.empty()) continue;
    if (const auto lists = read_lists(folder)) {
      check_lists(*lists, entries, folder);
      return *lists;
    }
  }
  return hold_back(config, entries);
}

ProteinSets generated_sets() {
  ProteinSets sets;
  sets.train = std::make_shared<GeneratedProteins>(
      GeneratedChainConfig{.seed = 1}, kGeneratedToTrain);
  sets.validation = std::make_shared<GeneratedProteins>(
      GeneratedChainConfig{.seed = 2}, kGeneratedValidationChains);
  return sets;
}

void check_config(const ProteinDataConfig& config) {
  const std::string& path = config.pdb_path;
  std::error_code error;
  if (path.starts_with("builtin:")) {
    throw ConfigError(
        fmt::format("--pdb_path {}: there is no such set; "
                    "generated proteins are {}",
                    path, kBuiltin));
  }
  if (path.empty()) {
    throw ConfigError(
        fmt::format("--pdb_path is missing: the folder of structures to train "
                    "on; {}",
                    remedy("data/cache")));
  }
  if (!fs::exists(path, error)) {
    throw ConfigError(fmt::format("--pdb_path '{}': no such file or folder; {}",
                                  path, remedy(path)));
  }
  if (!(config.val_split >= 0 && config.val_split < 1)) {
    throw ConfigError(
        fmt::format("--val_split {}: expected a number from 0 to less than 1",
                    config.val_split));
  }
  if (config.cache_dir.empty()) return;
  fs::create_directories(config.cache_dir, error);
  if (error) {
    throw IoError(fmt::format("--cache_dir {}: cannot be made: {}",
                              config.cache_dir, error.message()));
  }
}

}  // namespace

std::vector<fs::path> list_structures(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(
             folder, fs::directory_options::follow_directory_symlink)) {
      if (entry.is_regular_file() && is_structure_name(entry.path())) {
        files.push_back(entry.path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("cannot read {}: {}", folder.string(),
                              error.code().message()));
  }
  std::ranges::sort(files);
  return files;
}

ProteinSets open_protein_sets(const ProteinDataConfig& config) {
  if (config.pdb_path == kBuiltin) return generated_sets();
  check_config(config);
  const std::vector<fs::path> files =
      find_files(config.pdb_path, config.cache_dir);
  if (files.empty()) {
    throw ConfigError(fmt::format(
        "--pdb_path {}: the folder holds no {}; {}", config.pdb_path,
        is_same_folder(config.pdb_path, config.cache_dir)
            ? ".pt files"
            : ".pt files and no structures",
        remedy("data/cache")));
  }
  check_names(files);
  Opening opening(config, files);
  opening.run();
  Entries entries;
  std::vector<std::optional<ProteinEntry>> opened = opening.take_entries();
  for (size_t i = 0; i < files.size(); ++i) {
    entries.emplace(structure_name(files[i]), std::move(opened[i]));
  }
  const Lists lists = make_lists(config, entries);
  ProteinSets sets{.train = set_of(lists.train, entries),
                   .validation = set_of(lists.validation, entries),
                   .test = set_of(lists.test, entries),
                   .notes = opening.notes()};
  if (sets.train) return sets;
  throw ConfigError(
      fmt::format("--pdb_path {}: nothing to train on is left. {}",
                  config.pdb_path, base::join(sets.notes, ". ")));
}

std::shared_ptr<const ProteinFiles> open_structures(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw ConfigError(
        fmt::format("--pdb {}: no such file or folder", path.string()));
  }
  std::vector<ProteinEntry> entries;
  for (const fs::path& file : find_files(path, /*cache_dir=*/{})) {
    entries.push_back({.path = file});
  }
  if (entries.empty()) {
    throw ConfigError(fmt::format(
        "--pdb {}: the folder holds no structures (.pdb, .ent, .cif, with or "
        "without .gz)",
        path.string()));
  }
  return std::make_shared<ProteinFiles>(std::move(entries));
}

}  // namespace lockstep::proteins
