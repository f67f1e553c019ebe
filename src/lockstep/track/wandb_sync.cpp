#include "lockstep/track/wandb_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "lockstep/base/printable.h"
#include "lockstep/base/search_path.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPoll{50};
constexpr milliseconds kSilentWait = std::chrono::seconds(3);
constexpr std::uintmax_t kMostOutputBytes = 1 << 20;
constexpr size_t kMostReadBytes = 64 << 10;
constexpr size_t kMostLineBytes = 300;
constexpr std::string_view kPrefix = "wandb: ";
constexpr std::string_view kVersionWords = "wandb, version ";
constexpr std::string_view kAddressWords = "View run at ";

// The version first, which costs a second of one core: only at the first start.
constexpr const char* kWithVersion = R"("$0" --version; exec "$0" "$@")";

std::vector<std::string> sync_arguments(const WandbRun& run) {
  // Both exclusions are off: a run that is resumed may have been sent before.
  return {"beta",
          "sync",
          "--live",
          "--yes",
          "--no-skip-synced",
          "--no-skip-online",
          run.log().string()};
}

// The run's file already says what these variables would change, and the output
// of the client is read here.
base::Environment client_environment(base::Environment environment) {
  for (const char* name :
       {"WANDB_RESUME", "WANDB_RUN_ID", "WANDB_SILENT", "WANDB_QUIET"}) {
    environment.erase(name);
  }
  return environment;
}

SideProgram side_program(const WandbSyncConfig& config, const fs::path& output,
                         bool with_version) {
  const std::string client = config.client.string();
  SideProgram program{.file = config.client,
                      .arguments = {client},
                      .environment = client_environment(config.environment),
                      .output = output};
  if (with_version) {
    program.file = "/bin/sh";
    program.arguments = {"sh", "-c", kWithVersion, client};
  }
  for (auto& word : sync_arguments(config.run)) {
    program.arguments.push_back(std::move(word));
  }
  return program;
}

std::string end_text(int end) {
  return end < 0 ? fmt::format("was ended by signal {}", -end)
                 : fmt::format("ended with exit code {}", end);
}

std::string seconds_text(milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

std::optional<fs::path> find_wandb_client(
    const base::Environment& environment) {
  const auto client = base::find_on_path("wandb", environment);
  if (!client) return std::nullopt;
  return fs::absolute(*client);
}

std::string missing_wandb_client_text(const WandbRun& run) {
  return fmt::format(
      "WANDB_MODE is online, but there is no program wandb on PATH: the run is "
      "only recorded; to send runs while they train: pip install wandb=={}; to "
      "send this one later: {}",
      kTestedWandbClient, wandb_sync_command(run.folder));
}

WandbSync::WandbSync(WandbSyncConfig config)
    : config_(std::move(config)), delay_(config_.restart_delay) {}

void WandbSync::record(const Record& /*record*/) {
}  // The client reads the file.

fs::path WandbSync::output_file() const {
  return config_.run.folder / "sync.log";
}

bool WandbSync::is_synced() const {
  std::error_code error;
  return fs::exists(config_.run.log().string() + ".synced", error);
}

void WandbSync::start() {
  const fs::path output = output_file();
  // Output of an earlier client, or of an earlier part of the run.
  std::error_code error;
  const auto size = fs::file_size(output, error);
  output_offset_ = error ? 0 : size;
  open_line_.clear();
  last_line_.clear();
  is_connected_ = false;
  started_at_ = Clock::now();
  try {
    process_ = std::make_unique<SideProcess>(
        side_program(config_, output, /*with_version=*/!is_version_known_));
  } catch (const IoError& failure) {
    end_early(fmt::format("could not be started: {}", failure.what()));
  }
}

void WandbSync::tick(double /*unix_time*/) {
  if (process_) {
    watch();
  } else if (Clock::now() >= next_start_) {
    start();
  }
}

void WandbSync::watch() {
  read_output();
  if (const auto end = process_->end()) {
    read_output();
    end_early(end_text(*end));
  } else if (!is_connected_ &&
             Clock::now() - started_at_ > config_.connect_timeout) {
    warn_once(fmt::format(
        "wandb: no connection to the server for {}; the client keeps trying, "
        "training goes on (the client's output is in {})",
        seconds_text(config_.connect_timeout), output_file().string()));
  }
}

void WandbSync::end_early(const std::string& how) {
  process_.reset();
  next_start_ = Clock::now() + delay_;
  delay_ = std::min(2 * delay_, config_.longest_restart_delay);
  warn_once(fmt::format(
      "wandb: the client {}{}; training goes on, and the client is started "
      "again from time to time (its output is in {})",
      how, last_words(), output_file().string()));
}

std::string WandbSync::last_words() const {
  return last_line_.empty() ? "" : fmt::format(" (client: {})", last_line_);
}

void WandbSync::read_output() {
  std::ifstream file(output_file(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(output_offset_));
  std::string bytes(kMostReadBytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  output_offset_ += bytes.size();
  open_line_ += bytes;
  for (size_t end = open_line_.find('\n'); end != std::string::npos;
       end = open_line_.find('\n')) {
    read_line(base::trim(std::string_view(open_line_).substr(0, end)));
    open_line_.erase(0, end + 1);
  }
  if (open_line_.size() > kMostReadBytes) open_line_.clear();
  if (output_offset_ > kMostOutputBytes) {
    // The client appends: it goes on at the new end.
    std::error_code error;
    fs::resize_file(output_file(), 0, error);
    output_offset_ = 0;
  }
}

void WandbSync::read_line(std::string_view line) {
  if (line.empty()) return;
  const std::string_view words =
      line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line;
  last_line_ = base::printable_line(words, kMostLineBytes);
  if (line.starts_with(kVersionWords)) {
    check_version(line.substr(kVersionWords.size()));
    return;
  }
  const size_t address = line.find(kAddressWords);
  if (address == std::string_view::npos) return;
  is_connected_ = true;
  delay_ = config_.restart_delay;
  if (is_address_known_) return;
  is_address_known_ = true;
  info("wandb: this run is at " +
       base::printable_line(line.substr(address + kAddressWords.size())));
}

void WandbSync::check_version(std::string_view version) {
  is_version_known_ = true;
  if (version == kTestedWandbClient || !config_.on_warning) return;
  config_.on_warning(fmt::format(
      "wandb: this client is version {}, the tested one is {}; if runs do not "
      "arrive: pip install wandb=={}",
      base::printable_line(version, kMostLineBytes), kTestedWandbClient,
      kTestedWandbClient));
}

void WandbSync::finish(int exit_code) {
  const milliseconds limit =
      exit_code == 0 ? config_.exit_timeout
                     : std::min(config_.exit_timeout, config_.failed_timeout);
  // A run may be over before the first tick, and a client may have ended.
  if (!process_) start();
  wait_for_client(limit);
  const bool is_late = process_ && !process_->end();
  process_.reset();
  report_end(is_late ? " within " + seconds_text(limit) : "");
}

void WandbSync::wait_for_client(milliseconds limit) {
  const auto begin = Clock::now();
  bool is_announced = false;
  while (process_ && !process_->end()) {
    const auto waited = Clock::now() - begin;
    if (waited >= limit) break;
    if (!is_announced && waited > kSilentWait && limit > kSilentWait) {
      is_announced = true;
      info(fmt::format("wandb: sending what is left, for at most {}",
                       seconds_text(limit)));
    }
    std::this_thread::sleep_for(std::min(kPoll, limit));
  }
  read_output();
}

void WandbSync::report_end(const std::string& when) {
  if (is_synced()) {
    if (has_warned_) info("wandb: everything was sent");
    return;
  }
  const std::string text =
      fmt::format("wandb: not everything was sent{}{}; to send it: {}", when,
                  last_words(), wandb_sync_command(config_.run.folder));
  if (has_warned_) {
    info(text);
  } else {
    warn_once(text);
  }
}

void WandbSync::info(const std::string& text) const {
  if (config_.on_info) config_.on_info(text);
}

void WandbSync::warn_once(const std::string& text) {
  if (has_warned_) return;
  has_warned_ = true;
  if (config_.on_warning) config_.on_warning(text);
}

}  // namespace lockstep::track
