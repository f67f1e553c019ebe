#include "lockstep/run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint/folder.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/error.h"
#include "lockstep/formats/safetensors.h"
#include "lockstep/formats/torch_file.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

// The nearest folder above (or at) `path` that exists.
fs::path existing_part(fs::path path) {
  while (!path.empty() && !fs::exists(path)) path = path.parent_path();
  return path.empty() ? fs::path(".") : path;
}

// Only files that a run has written; other files belong to the user.
std::vector<fs::path> checkpoint_files(const fs::path& folder,
                                       const FileNames& names) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    if (!entry.is_regular_file()) continue;
    for (const std::string& name :
         {names.checkpoint, names.epoch_checkpoint, names.best, names.last}) {
      if (fnmatch(engine::file_pattern(name).c_str(), file.c_str(),
                  FNM_EXTMATCH) == 0) {
        files.push_back(entry.path());
        break;
      }
    }
  }
  return files;
}

void remove_checkpoints(const fs::path& folder, const FileNames& names) {
  for (const fs::path& file : checkpoint_files(folder, names)) fs::remove(file);
  for (const std::string& name :
       {names.log, std::string(kMetricsFile), std::string(kMetricsTable),
        std::string(kWandbFile), std::string("loss.svg"),
        std::string("loss.png")}) {
    fs::remove(folder / name);
  }
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder / kTensorBoardFolder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("events.out.tfevents.")) fs::remove(entry.path());
  }
}

// The process that holds the lock. It writes its name just after locking, which
// fails on a full disk.
std::string holder_of(const fs::path& lock_file) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    const std::string text = base::try_read_file(lock_file).value_or("");
    if (text.ends_with('\n')) return std::string(base::trim(text));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return fmt::format("its process is not known; fuser {} names it",
                     lock_file.string());
}

// False: another process holds the lock. A file system without locks counts as
// locked.
bool try_lock(int file, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{50};
  for (;;) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
      return true;
    }
    if (patience.count() <= 0) return false;
    std::this_thread::sleep_for(kPause);
    patience -= kPause;
  }
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path parent = fs::absolute(file, error).parent_path();
  return fs::equivalent(parent, folder, error);
}

constexpr std::string_view kRecipeMark = "# recipe: ";

// The text after the leading comments.
std::string_view settings_part(std::string_view text) {
  while (text.starts_with("#")) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return text;
}

// Why the text of a run's config cannot be used; empty if it can. Comparing it
// with a checkpoint's settings detects a file truncated at a line end.
std::string config_problem(const std::optional<std::string>& text,
                           const std::optional<SavedSettings>& in_checkpoint) {
  if (!text) return "is missing";
  if (text->find(kRecipeMark) == std::string::npos) {
    return "is damaged: it does not name its recipe";
  }
  if (!in_checkpoint) return "";
  const std::string_view own = settings_part(*text);
  const bool is_cut_off =
      !text->ends_with('\n') || (own.size() < in_checkpoint->text.size() &&
                                 in_checkpoint->text.starts_with(own));
  return is_cut_off ? "is damaged: it is cut off" : "";
}

std::optional<SavedSettings> settings_of_folder(const SettingsQuery& query) {
  const fs::path file = query.folder / kConfigFile;
  const auto text = base::try_read_file(file);
  auto in_checkpoint = newest_checkpoint_settings(query);
  const std::string problem = config_problem(text, in_checkpoint);
  if (!problem.empty() && in_checkpoint) {
    in_checkpoint->problem = fmt::format("{} {}", file.string(), problem);
    return in_checkpoint;
  }
  if (!text) return std::nullopt;
  if (text->find(recipe_line(query.recipe)) == std::string::npos) {
    throw ConfigError(
        fmt::format("--resume latest: {} is not of the recipe {}; choose the "
                    "recipe or the --save_dir of the run",
                    file.string(), query.recipe));
  }
  return SavedSettings{.text = *text, .source = file.string()};
}

// No value if Lockstep did not write the file. Throws ConfigError if it belongs
// to another recipe.
std::optional<SavedSettings> settings_of_checkpoint(const fs::path& path,
                                                    const std::string& recipe) {
  if (formats::is_safetensors_file(formats::open_source(path)))
    return std::nullopt;
  // Only the structure: tensors are read and verified with the weights.
  const formats::Value checkpoint =
      formats::read_torch_file(path, formats::TorchFileCheck::kStructure);
  const auto own =
      BasicView<formats::TensorRecord>(checkpoint).find("lockstep");
  if (!own) return std::nullopt;
  const std::string& other = own->at("recipe").as_string();
  if (other != recipe) {
    throw ConfigError(
        fmt::format("{}: a checkpoint of the recipe {}, not of {}",
                    path.string(), other, recipe));
  }
  return SavedSettings{.text = own->at("config").as_string(),
                       .source = path.string()};
}

}  // namespace

std::string job_line(const base::Environment& environment) {
  if (const auto job = base::find(environment, "LOCKSTEP_JOB")) {
    return fmt::format("# job {}\n", *job);
  }
  // Under torchrun the process that restarts the workers stays the same.
  if (const auto run = base::find(environment, "TORCHELASTIC_RUN_ID")) {
    return fmt::format("# job {} of process {}\n", *run, getppid());
  }
  // A requeued job of Slurm keeps its number.
  if (const auto job = base::find(environment, "SLURM_JOB_ID")) {
    return fmt::format("# job {} of Slurm\n", *job);
  }
  return "";
}

int64_t restart_count(const base::Environment& environment) {
  if (const auto count =
          base::find_integer(environment, "TORCHELASTIC_RESTART_COUNT")) {
    return *count;
  }
  return base::find_integer(environment, "SLURM_RESTART_COUNT").value_or(0);
}

bool has_checkpoints(const fs::path& folder, const FileNames& names) {
  return fs::is_directory(folder) && !checkpoint_files(folder, names).empty();
}

std::optional<std::string> folder_problem(const fs::path& path) {
  std::error_code ignored;
  const fs::path base = existing_part(path);
  if (!fs::is_directory(base, ignored)) {
    return fmt::format("{} is a file, not a folder", base.string());
  }
  if (access(base.c_str(), W_OK | X_OK) == 0) return std::nullopt;
  return "it cannot be written: " + base::errno_text();
}

void check_folder_place(const fs::path& path) {
  if (const auto problem = folder_problem(path)) {
    throw ConfigError(
        fmt::format("--save_dir {}: {}; choose another --save_dir",
                    path.string(), *problem));
  }
}

// The kernel holds the lock until the process ends in any way.
base::FileDescriptor lock_run_folder(const fs::path& path,
                                     std::chrono::milliseconds patience) {
  const fs::path file = path / kLockFile;
  base::FileDescriptor lock(
      open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) {
    throw IoError(
        fmt::format("cannot open {}: {}", file.string(), base::errno_text()));
  }
  if (!try_lock(lock.get(), patience)) {
    throw ConfigError(fmt::format(
        "--save_dir {} is in use by another training ({}): wait for it, end "
        "it, or choose another --save_dir",
        path.string(), holder_of(file)));
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string name = fmt::format("process {} on {}\n", getpid(),
                                       std::string_view(host.data()));
  // Truncated last, so that concurrent readers never find it empty.
  const bool is_written = base::write_all(lock.get(), name);
  [[maybe_unused]] const int result =
      ftruncate(lock.get(), static_cast<off_t>(is_written ? name.size() : 0));
  return lock;
}

void check_folder_is_free(const fs::path& path, const TrainConfig& config,
                          const FileNames& names) {
  if (config.resume && *config.resume != "latest" &&
      !fs::exists(*config.resume)) {
    throw ConfigError(
        fmt::format("--resume {}: there is no such file; --resume latest takes "
                    "the newest checkpoint of --save_dir {}",
                    *config.resume, path.string()));
  }
  if (!fs::exists(path / kConfigFile)) {
    if (!config.resume && !config.overwrite && has_checkpoints(path, names)) {
      throw ConfigError(fmt::format(
          "--save_dir {} holds checkpoints of a run: resume it with --resume "
          "latest, delete it with --overwrite, or choose another --save_dir",
          path.string()));
    }
    return;
  }
  const bool is_own = config.resume && (*config.resume == "latest" ||
                                        lies_in(*config.resume, path));
  if (config.resume && !is_own) {
    throw ConfigError(
        fmt::format("--save_dir {} holds another run than the one of --resume "
                    "{}: choose another --save_dir for the resumed run",
                    path.string(), *config.resume));
  }
  if (!is_own && !config.overwrite && !config.fast_dev_run) {
    throw ConfigError(fmt::format(
        "--save_dir {} already holds a run: resume it with --resume latest, "
        "delete it with --overwrite, or choose another --save_dir",
        path.string()));
  }
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw ConfigError(fmt::format(
      "--save_dir {} cannot be created: {}; choose another --save_dir",
      path.string(), error.message()));
}

void open_run_folder(const fs::path& path, const TrainConfig& config,
                     const FileNames& names, const std::string& config_yaml) {
  make_folder(path);
  if (config.overwrite) remove_checkpoints(path, names);
  base::remove_leftovers(path);
  base::write_file_atomically(path / kConfigFile, config_yaml);
}

fs::path set_aside(const fs::path& folder, const std::vector<fs::path>& newer) {
  if (newer.empty()) return {};
  fs::path aside;
  for (int number = 1; aside.empty() || fs::exists(aside); ++number) {
    aside = folder / fmt::format("left_{}", number);
  }
  fs::create_directory(aside);
  for (const fs::path& file : newer) fs::rename(file, aside / file.filename());
  if (fs::exists(folder / kMetricsFile)) {
    fs::copy_file(folder / kMetricsFile, aside / kMetricsFile);
  }
  return aside;
}

std::string recipe_line(const std::string& recipe) {
  return std::string(kRecipeMark) + recipe + "\n";
}

std::optional<SavedSettings> saved_settings(const SettingsQuery& query) {
  if (query.resume == "latest") return settings_of_folder(query);
  if (!fs::is_regular_file(query.resume)) return std::nullopt;
  return settings_of_checkpoint(query.resume, query.recipe);
}

std::optional<SavedSettings> newest_checkpoint_settings(
    const SettingsQuery& query) {
  checkpoint::CheckpointQuery files{.folder = query.folder,
                                    .patterns = {},
                                    .step_key = "lockstep.state.step"};
  for (const std::string& name :
       {query.names.checkpoint, query.names.epoch_checkpoint, query.names.best,
        query.names.last}) {
    if (!name.empty()) files.patterns.push_back(engine::file_pattern(name));
  }
  for (const checkpoint::CheckpointFile& file :
       checkpoint::list_checkpoints(files)) {
    try {
      if (auto found = settings_of_checkpoint(file.path, query.recipe)) {
        return found;
      }
    } catch (const Error&) {
      // Another recipe, or damaged: try an older one.
    }
  }
  return std::nullopt;
}

void require_file(const char* flag, const fs::path& path) {
  if (fs::is_regular_file(path)) return;
  throw ConfigError(fmt::format("{} {}: {}", flag, path.string(),
                                fs::is_directory(path)
                                    ? "this is a folder; name a file in it"
                                    : "there is no such file"));
}

}  // namespace lockstep::run
