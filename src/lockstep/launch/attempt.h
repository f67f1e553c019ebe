// One attempt: the group of workers from its start to the end of the last
// process.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/launch/control.h"
#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/group.h"
#include "lockstep/launch/processes.h"
#include "lockstep/launch/recovery.h"
#include "lockstep/launch/silence.h"
#include "lockstep/launch/stall_monitor.h"
#include "lockstep/launch/stop_patience.h"
#include "lockstep/launch/verdict.h"
#include "lockstep/nodes/node_link.h"

namespace lockstep::launch {

struct AttemptResult {
  enum class Kind {
    kSuccess,
    kFailure,
    kStopped,    // a signal asked the launcher to end the job
    kEnded,      // because of another node
    kRegrouped,  // because nodes of an elastic job join or leave
    kSuspended,  // its ranks wait in memory for another world
    kAbandoned,  // the front process is gone
  };
  Kind kind = Kind::kSuccess;
  int stop_signal = 0;                 // 0: none came
  bool is_leaving = false;             // SIGTERM: the others go on
  std::vector<Failure> failures = {};  // in the order of ranks
  // All ranks at the first failure, before anything was ended.
  std::vector<RankSnapshot> snapshots = {};
  bool is_overdue = false;  // the failure is that no rank ended by itself
  bool is_silent = false;   // no rank gave a sign of life
  // Processes that survive SIGKILL (the kernel holds them); normally none.
  std::vector<ProcessInfo> survivors = {};
  std::string memory_note = {};  // on processes that lack of memory killed
  bool has_memory_kills = false;
  std::string run_folder = {};  // of a training; empty: not known
  // What a stopped training lost; no value when it lost nothing.
  std::optional<std::string> loss = {};
  HeldState held = {};  // by ranks that are suspended
};

// Where events come from and text goes to.
struct Surroundings {
  ControlReader& control;
  ConsoleStream& out;
  ConsoleStream& err;
  int child_fd;                     // a signalfd for SIGCHLD
  nodes::NodeLink* link = nullptr;  // to the other nodes; nullptr: none
  bool is_elastic = false;          // the job goes on when nodes are lost
  bool may_leave = false;           // SIGTERM ends this node's part only
  // Ranks of several nodes keep their state when others are lost.
  bool keeps_state = false;
  Spares* spares = nullptr;  // that may replace them; nullptr: there are none
  // Starts the rank of an ended worker again; empty: no rank is replaced.
  std::function<void(Worker& worker, int generation)> replace = {};
};

// Waits for events only, never for time: output, deaths, signals, deadlines.
class Attempt {
 public:
  Attempt(const Plan& plan, WorkerGroup& group,
          const Surroundings& surroundings);

  // Returns when no process of the job is left, or those that are left are
  // suspended.
  AttemptResult run();

 private:
  // Stages follow one another in this order; some may be left out.
  enum class Stage {
    kRunning,
    kEnding,    // workers were asked to end
    kKilling,   // workers were killed
    kSweeping,  // other descendants were asked to end
    kOver,
  };

  void wait_for_events();
  int64_t next_deadline_ns() const;
  void handle_signal(int signal);
  bool is_stop_signal(int signal) const;
  void stop(int signal);
  void leave();
  void leave_state();
  void regroup();
  void give_up_saving();
  void cut();
  void suspend();
  bool hears_nodes() const;
  void reap();
  void record_end(pid_t pid, int wait_status, const rusage& usage);
  // For workers that train and save: also ended ones, or only those alive.
  enum class Who { kAll, kAlive };
  std::vector<base::TrainingStatus> trainings(Who who) const;
  bool has_failed_worker() const;
  void wait_for_save();
  void hear_nodes();
  void follow(const nodes::End& order);
  bool recover();
  bool replace_dead();
  void keep_spares();
  void check_failures();
  void check_collectives();
  void check_silence(std::span<const RankSnapshot> ranks);
  void tell_stalls();
  void print(std::span<const std::string> lines);
  void end_workers(int signal);
  void advance();
  void advance_sweep();
  void set_deadline(double seconds);
  bool is_late() const;
  bool has_live_workers() const;
  bool has_leaver() const;
  void drain();
  void collect_failures(AttemptResult& result) const;
  void collect_earlier_failures(AttemptResult& result) const;
  AttemptResult result();

  const Plan& plan_;
  WorkerGroup& group_;
  Surroundings surroundings_;
  Stage stage_ = Stage::kRunning;
  int64_t deadline_ns_ = 0;
  int64_t next_check_ns_ = 0;
  int64_t victim_ended_ns_ = 0;    // the first one; 0: none has ended yet
  int64_t cause_deadline_ns_ = 0;  // of the report on why it ended
  bool has_children_ = true;
  bool is_stopped_ = false;     // ended by a signal, not by a failure
  bool is_ordered_ = false;     // ended because of another node
  bool is_regrouping_ = false;  // all nodes end, to start again with others
  bool is_cut_ = false;         // nodes may start elsewhere without this one
  bool is_suspended_ = false;   // its ranks wait for another world
  bool is_leaving_ = false;     // this one is not among them
  int asked_signal_ = 0;        // that the workers got
  int stop_signal_ = 0;
  // After the first Ctrl-C, and while nodes regroup.
  std::optional<StopPatience> patience_;
  int64_t next_look_ns_ = 0;  // at a training that saves; 0: there is none
  std::optional<Failure> overdue_;  // a rank that exceeds the timeout
  // No rank of this node does anything: a failure when all nodes say so.
  std::optional<Failure> stuck_;
  SilenceWatch silence_;
  RecoveryPolicy recovery_;
  bool lacks_spares_ = true;  // they were not started since a rank was
  StallMonitor stalls_;
  bool is_silent_ = false;  // overdue_ is about silence
  std::vector<RankSnapshot> snapshots_;
  std::vector<ProcessInfo> survivors_;
};

}  // namespace lockstep::launch
