// The one channel from a worker to its launcher: a page of shared memory per
// rank.
//
// The launcher makes a page (a memfd), the worker inherits its descriptor,
// named in LOCKSTEP_STATUS_FD, and writes what it is doing; the launcher reads
// it at any time, also after the worker died. Every field is an atomic number,
// so a reader sees old or new values and never half of one. A program that does
// not know Lockstep leaves the page untouched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/duration_counts.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"

namespace lockstep::base {

enum class Phase : int32_t {
  kStarting,
  kConnecting,
  kReady,
  kLoadingData,
  kForward,
  kBackward,
  kClosing,
  kDone,
  kUpdating,
  kEvaluating,
  kSampling,
  kSaving,
  kBetweenSteps,
};

enum class Collective : int32_t {
  kNone,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kVote,
};

std::string phase_name(Phase phase);
std::string collective_name(Collective collective);

// The bytes of the page. Fixed: a launcher and a worker of different builds
// must agree.
struct StatusPage {
  static constexpr uint64_t kMagic = 0x314753544b434f4c;  // "LOCKTSG1"
  static constexpr int32_t kVersion = 1;
  static constexpr size_t kNumPhases = 16;

  std::atomic<uint64_t> magic;  // kMagic once a Lockstep worker has attached.
  std::atomic<int32_t> version;
  std::atomic<int32_t> pid;
  std::atomic<int32_t> rank;
  std::atomic<int32_t> world_size;
  std::atomic<int32_t> phase;         // Phase
  std::atomic<int32_t> collective;    // Collective last started
  std::atomic<int64_t> heartbeat_ns;  // monotonic_ns() of the last sign of life
  std::atomic<int64_t> step;          // -1 before the first step
  std::atomic<int64_t> collectives_started;
  std::atomic<int64_t> collectives_finished;
  std::atomic<int64_t> collective_started_ns;
  std::atomic<int64_t> collective_bytes;
  std::atomic<int64_t> host_bytes;         // Resident memory of the process
  std::atomic<int64_t> device_bytes;       // Memory taken on the GPU
  std::atomic<int64_t> timeout_ns;         // Limit of a collective; 0: unknown
  std::atomic<int64_t> collective_failed;  // Number of the last one that failed
  std::atomic<int32_t> job_is_lost;  // Set by the launcher: a rank has failed
  std::atomic<int32_t> unused;
  // Older workers leave them zero.
  std::atomic<int64_t> phase_begin_ns;  // monotonic_ns()
  std::atomic<int64_t> step_begin_ns;
  std::atomic<int64_t> step_ns;  // Duration of the last step; 0: unknown
  std::array<DurationCounts, kNumPhases> phase_durations;
  std::array<char, 4096 - 144 - kNumPhases * sizeof(DurationCounts)> reserved;
};
static_assert(sizeof(StatusPage) == 4096);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Snapshot of a rank, for the launcher.
struct RankStatus {
  int pid = 0;
  int rank = 0;
  int world_size = 0;
  Phase phase = Phase::kStarting;
  Collective collective = Collective::kNone;
  double silent_seconds = 0;  // Since the last sign of life
  int64_t step = -1;
  int64_t collectives_started = 0;
  int64_t collectives_finished = 0;
  double collective_seconds = 0;  // Since the last collective was started
  int64_t collective_bytes = 0;
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
  double timeout_seconds = 0;  // Limit of a collective; 0: unknown
  bool last_collective_failed = false;
  int64_t heartbeat_ns = 0;  // monotonic_ns() of the last sign of life
  double step_seconds = 0;   // Duration of the last step; 0: unknown
  // 99 of 100 stays in this phase are at most this long (DurationCounts).
  std::optional<double> phase_p99_seconds = {};
};

// No value while no Lockstep worker has attached to the page.
std::optional<RankStatus> read_status_page(const StatusPage& page);

// The launcher's side: makes the page and reads it.
class StatusReader {
 public:
  StatusReader();  // Throws IoError.

  // The descriptor to hand to the worker (close-on-exec is set; the child
  // clears it).
  int fd() const { return fd_.get(); }

  // No value while no Lockstep worker has attached: a foreign program.
  std::optional<RankStatus> read() const;

  // Tells the worker, before its SIGTERM, that another rank has failed: nothing
  // is left to agree on or to save together.
  void announce_loss() const;

 private:
  FileDescriptor fd_;
  std::shared_ptr<StatusPage> page_;
};

// The worker's side. All calls are cheap (a few stores), thread-safe, and do
// nothing when the program was not started by `lockstep run`.
class StatusWriter {
 public:
  StatusWriter() = default;  // Writes to a private page that nobody reads.

  // Attaches to the page named in LOCKSTEP_STATUS_FD; a private page when there
  // is none.
  static StatusWriter from_environment(const Environment& environment);

  void set_place(int rank, int world_size);
  void set_phase(Phase phase);
  void set_step(int64_t step);
  void set_memory(int64_t host_bytes, int64_t device_bytes);
  // The limit that the worker itself puts on its collectives, where it is not
  // the one of the environment: the launcher waits as long.
  void set_timeout(double seconds);
  // Returns the number of the collective, counted from 1; 0 within a capture.
  int64_t start_collective(Collective collective, int64_t bytes);
  void finish_collective();
  // The ranks connect anew, some of them for the first time: all count from 0.
  void restart_collectives();
  // It ended with an error: it runs no longer, and the verdict still shows it.
  void fail_collective(int64_t number);
  // While a CUDA graph is captured, collectives are noted but do not start;
  // each replay starts all of them.
  struct Captured {
    int64_t count = 0;
    int64_t bytes = 0;
  };
  void begin_capture();
  Captured end_capture();
  void start_captured(const Captured& captured);
  void finish_captured(const Captured& captured);
  int64_t collectives_started() const;
  // When the last collective was started, in monotonic_ns().
  int64_t last_collective_ns() const;
  // Another rank has failed and the launcher is ending the job. Safe to call in
  // a signal handler.
  bool job_is_lost() const;

  // Called whenever a collective is started through this writer or a copy of
  // it, on the thread that starts it. Set it while none runs.
  void observe_collectives(std::function<void()> observer);

 private:
  struct Observer {
    std::function<void()> collective_started = {};
    std::atomic<bool> is_capturing = false;
    std::atomic<int64_t> num_captured = 0;
    std::atomic<int64_t> captured_bytes = 0;
  };
  void beat();
  void note_collective(Collective collective, int64_t bytes);

  std::shared_ptr<StatusPage> page_ = std::make_shared<StatusPage>();
  std::shared_ptr<Observer> observer_ = std::make_shared<Observer>();
};

}  // namespace lockstep::base
