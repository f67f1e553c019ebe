// Sends a run to a Weights & Biases server while it is recorded, by wandb's own
// client.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"
#include "lockstep/track/side_process.h"
#include "lockstep/track/tracker.h"
#include "lockstep/track/wandb_run.h"

namespace lockstep::track {

// The version of the client that the tests install and run
// (tools/setup/torch.sh). Its live sync may change with every release.
constexpr const char* kTestedWandbClient = "0.31.0";

// The program "wandb" on PATH.
std::optional<std::filesystem::path> find_wandb_client(
    const base::Environment& environment);

// What to install, and how to send the run later.
std::string missing_wandb_client_text(const WandbRun& run);

struct WandbSyncConfig {
  std::filesystem::path client = {};
  WandbRun run = {};
  // The client's: it holds the user's key, which nothing here looks at.
  base::Environment environment = {};
  // How long finish() waits for the client. Longer than `failed_timeout` only
  // for a run that ended well: an error must be reported soon, and a launcher
  // that was asked to stop does not wait for long.
  std::chrono::milliseconds exit_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds failed_timeout = std::chrono::seconds(5);
  // Without a connection for this long there is a warning.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
  // Before a client that ended is started again; doubles each time, up to
  // `longest_restart_delay`.
  std::chrono::milliseconds restart_delay = std::chrono::seconds(30);
  std::chrono::milliseconds longest_restart_delay = std::chrono::minutes(10);
  // Whole sentences, on the thread of the calls.
  std::function<void(const std::string&)> on_info = {};
  std::function<void(const std::string&)> on_warning = {};
};

// Starts the client at the first tick(), watches it and starts it again when it
// ends early. Nothing that the client or the server does is an error: there is
// one warning, and at the end one line when not everything was sent. A client
// that starts reads the run's file from its beginning, and goes on reading
// while it grows. Add it behind the run's WandbTracker: the client ends by
// itself when it has sent the end of the run.
class WandbSync : public Tracker {
 public:
  explicit WandbSync(WandbSyncConfig config);

  std::string name() const override { return "wandb sync"; }
  void record(const Record& record) override;
  void tick(double unix_time) override;
  // Waits for the client as long as the config allows, then kills it.
  void finish(int exit_code) override;

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path output_file() const;
  bool is_synced() const;
  void start();
  void watch();
  void read_output();
  void read_line(std::string_view line);
  void check_version(std::string_view version);
  void end_early(const std::string& how);
  std::string last_words() const;  // " (client: ...)", or nothing.
  void wait_for_client(std::chrono::milliseconds limit);
  void report_end(const std::string& when);
  void info(const std::string& text) const;
  // The first warning is one; what follows is most likely its consequence.
  void warn_once(const std::string& text);

  WandbSyncConfig config_;
  std::unique_ptr<SideProcess> process_;
  Clock::time_point started_at_ = {};
  Clock::time_point next_start_ = {};  // While no client runs.
  std::chrono::milliseconds delay_;
  std::uintmax_t output_offset_ = 0;  // What of the client's output is read.
  std::string open_line_ = {};
  std::string last_line_ = {};
  bool is_version_known_ = false;
  bool is_connected_ = false;  // This client.
  bool is_address_known_ = false;
  bool has_warned_ = false;
};

}  // namespace lockstep::track
