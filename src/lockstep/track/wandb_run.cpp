#include "lockstep/track/wandb_run.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/track/wandb_config.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;

constexpr int kIdLength = 8;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw IoError(fmt::format("cannot make the folder {}: {}", folder.string(),
                              error.message()));
  }
}

// Local time, as wandb names its folders.
std::string folder_name(const std::string& id, std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d_%H%M%S", &parts);
  return fmt::format("offline-run-{}-{}", text.data(), id);
}

std::string shell_word(const std::string& text) {
  const bool is_plain =
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyz"
          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=+,:@-") == std::string::npos;
  return is_plain ? text : "'" + base::replace_all(text, "'", "'\\''") + "'";
}

fs::path place_of(const fs::path& state_file) {
  return fs::absolute(state_file).lexically_normal();
}

struct WandbState {
  WandbRun run;
  fs::path owner;  // Where the file was when it was written.
};

std::optional<WandbState> read_state(const fs::path& state_file) {
  const auto text = base::try_read_file(state_file);
  if (!text) return std::nullopt;
  const nlohmann::json json =
      nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&json](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
  };
  if (!json.is_object()) return std::nullopt;
  WandbState state{.run = {text_of("run_id"), text_of("folder")},
                   .owner = text_of("owner")};
  if (!is_wandb_name(state.run.id) || state.run.folder.empty()) {
    return std::nullopt;
  }
  if (state.owner.empty()) state.owner = place_of(state_file);
  return state;
}

}  // namespace

fs::path WandbRun::log() const { return folder / ("run-" + id + ".wandb"); }

fs::path WandbRun::files() const { return folder / "files"; }

fs::path WandbRun::open_step() const {
  return folder / ("run-" + id + ".open-step");
}

std::string new_wandb_run_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::uniform_int_distribution<size_t> draw(0, kLetters.size() - 1);
  std::string id;
  for (int i = 0; i < kIdLength; ++i) id += kLetters[draw(device)];
  return id;
}

WandbRun make_wandb_run(const fs::path& parent, const std::string& id,
                        double unix_time) {
  const fs::path all = fs::absolute(parent / "wandb").lexically_normal();
  make_folder(all);
  auto time = static_cast<std::time_t>(unix_time);
  // Two runs of one id in one second: the later one takes the next name.
  fs::path folder = all / folder_name(id, time);
  std::error_code error;
  while (fs::exists(folder, error)) folder = all / folder_name(id, ++time);
  make_folder(folder / "files");
  const WandbRun run{id, folder};
  point_latest_to(run);
  return run;
}

// Not every file system has links, and nothing depends on this one.
void point_latest_to(const WandbRun& run) {
  const fs::path link = run.folder.parent_path() / "latest-run";
  const fs::path fresh = link.string() + "." + new_wandb_run_id();
  std::error_code error;
  fs::create_directory_symlink(run.folder.filename(), fresh, error);
  if (error) return;
  fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
}

std::optional<WandbRun> remembered_wandb_run(const fs::path& state_file) {
  const auto state = read_state(state_file);
  if (!state) return std::nullopt;
  WandbRun moved = state->run;
  moved.folder = (place_of(state_file).parent_path() /
                  moved.folder.lexically_relative(state->owner.parent_path()))
                     .lexically_normal();
  std::error_code error;
  const bool is_moved =
      !fs::exists(state->run.log(), error) && fs::exists(moved.log(), error);
  return is_moved ? moved : state->run;
}

bool is_copied_wandb_state(const fs::path& state_file) {
  const auto state = read_state(state_file);
  const fs::path here = place_of(state_file);
  if (!state || state->owner == here) return false;
  // One folder can have two names; two files that are links can be one file.
  std::error_code error;
  if (fs::equivalent(state->owner.parent_path(), here.parent_path(), error)) {
    return false;
  }
  // A run folder that was made again at the same path is a new run.
  const auto original = read_state(state->owner);
  return original && original->run.id == state->run.id;
}

void remember_wandb_run(const fs::path& state_file, const WandbRun& run) {
  const nlohmann::json state = {{"run_id", run.id},
                                {"folder", run.folder.string()},
                                {"owner", place_of(state_file).string()}};
  base::write_file_atomically(
      state_file,
      state.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
}

void forget_wandb_sync(const WandbRun& run) {
  for (const char* ending : {".synced", ".syncstate"}) {
    std::error_code error;
    fs::remove(run.log().string() + ending, error);
  }
}

std::string wandb_sync_command(const fs::path& run_folder) {
  return "wandb sync " + shell_word(run_folder.string());
}

}  // namespace lockstep::track
