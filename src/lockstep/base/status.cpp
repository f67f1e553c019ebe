#include "lockstep/base/status.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/status_memory.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

std::shared_ptr<StatusPage> map_status_page(int fd) {
  return std::static_pointer_cast<StatusPage>(map_status_memory(fd));
}

static_assert(sizeof(StatusPage) == kStatusMemoryBytes);

// nullptr for a phase of a newer build.
template <typename Page>
auto* durations_of(Page& page, int32_t phase) {
  const auto index = static_cast<size_t>(phase);
  return index < page.phase_durations.size() ? &page.phase_durations[index]
                                             : nullptr;
}

std::optional<double> phase_p99_seconds(const StatusPage& page) {
  const DurationCounts* durations = durations_of(page, page.phase);
  return durations == nullptr ? std::nullopt : durations->p99_seconds();
}

}  // namespace

std::string phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStarting: return "starting";
    case Phase::kConnecting: return "connecting";
    case Phase::kReady: return "between collectives";
    case Phase::kLoadingData: return "loading data";
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "in or after backward";
    case Phase::kClosing: return "closing";
    case Phase::kDone: return "done";
    case Phase::kUpdating: return "updating the weights";
    case Phase::kEvaluating: return "evaluating";
    case Phase::kSampling: return "sampling";
    case Phase::kSaving: return "saving a checkpoint";
    case Phase::kBetweenSteps: return "between steps";
  }
  return "unknown";
}

std::string collective_name(Collective collective) {
  switch (collective) {
    case Collective::kNone: return "none";
    case Collective::kAllReduce: return "all_reduce";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kAllGather: return "all_gather";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kBarrier: return "barrier";
    case Collective::kVote: return "vote";
  }
  return "unknown";
}

StatusReader::StatusReader()
    : fd_(memfd_create(kStatusMemoryName, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  // Sealed: reading a page that a worker truncated would be a SIGBUS here.
  if (!fd_ || ftruncate(fd_.get(), off_t{kStatusMemoryBytes}) != 0 ||
      fcntl(fd_.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw IoError("cannot make a status page: " + errno_text());
  }
  page_ = map_status_page(fd_.get());
  if (page_ == nullptr) {
    throw IoError("cannot map a status page: " + errno_text());
  }
  page_->step = -1;  // The rest of a new file is zero.
}

std::optional<RankStatus> StatusReader::read() const {
  return read_status_page(*page_);
}

std::optional<RankStatus> read_status_page(const StatusPage& page) {
  if (page.magic.load(std::memory_order_acquire) != StatusPage::kMagic ||
      page.version != StatusPage::kVersion) {
    return std::nullopt;
  }
  const int64_t now = monotonic_ns();
  return RankStatus{
      .pid = page.pid,
      .rank = page.rank,
      .world_size = page.world_size,
      .phase = static_cast<Phase>(page.phase.load()),
      .collective = static_cast<Collective>(page.collective.load()),
      .silent_seconds = seconds_between(page.heartbeat_ns, now),
      .step = page.step,
      .collectives_started = page.collectives_started,
      .collectives_finished = page.collectives_finished,
      .collective_seconds = seconds_between(page.collective_started_ns, now),
      .collective_bytes = page.collective_bytes,
      .host_bytes = page.host_bytes,
      .device_bytes = page.device_bytes,
      .timeout_seconds = seconds_between(0, page.timeout_ns),
      .last_collective_failed =
          page.collectives_started > 0 &&
          page.collective_failed == page.collectives_started,
      .heartbeat_ns = page.heartbeat_ns,
      .step_seconds = seconds_between(0, page.step_ns),
      .phase_p99_seconds = phase_p99_seconds(page),
  };
}

void StatusReader::announce_loss() const { page_->job_is_lost = 1; }

StatusWriter StatusWriter::from_environment(const Environment& environment) {
  StatusWriter writer;
  const auto fd = find_integer(environment, "LOCKSTEP_STATUS_FD");
  if (!fd || !is_status_memory(static_cast<int>(*fd))) return writer;
  // A child of this process has no business with the page.
  fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC);
  auto page = map_status_page(static_cast<int>(*fd));
  if (page == nullptr) return writer;
  writer.page_ = std::move(page);
  writer.page_->version = StatusPage::kVersion;
  writer.page_->pid = getpid();
  writer.beat();
  writer.page_->magic.store(StatusPage::kMagic, std::memory_order_release);
  return writer;
}

void StatusWriter::beat() {
  page_->heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

void StatusWriter::set_place(int rank, int world_size) {
  page_->rank = rank;
  page_->world_size = world_size;
  beat();
}

void StatusWriter::set_phase(Phase phase) {
  const int64_t now = monotonic_ns();
  const int64_t begin =
      page_->phase_begin_ns.exchange(now, std::memory_order_relaxed);
  const int32_t before = page_->phase.exchange(static_cast<int32_t>(phase),
                                               std::memory_order_relaxed);
  DurationCounts* durations = durations_of(*page_, before);
  if (begin > 0 && durations != nullptr) durations->add(now - begin);
  page_->heartbeat_ns.store(now, std::memory_order_relaxed);
}

void StatusWriter::set_step(int64_t step) {
  const int64_t now = monotonic_ns();
  const int64_t begin =
      page_->step_begin_ns.exchange(now, std::memory_order_relaxed);
  if (begin > 0) page_->step_ns.store(now - begin, std::memory_order_relaxed);
  page_->step.store(step, std::memory_order_relaxed);
  page_->heartbeat_ns.store(now, std::memory_order_relaxed);
}

void StatusWriter::set_memory(int64_t host_bytes, int64_t device_bytes) {
  page_->host_bytes.store(host_bytes, std::memory_order_relaxed);
  page_->device_bytes.store(device_bytes, std::memory_order_relaxed);
}

void StatusWriter::set_timeout(double seconds) {
  page_->timeout_ns.store(static_cast<int64_t>(seconds * 1e9),
                          std::memory_order_relaxed);
}

void StatusWriter::note_collective(Collective collective, int64_t bytes) {
  page_->collective.store(static_cast<int32_t>(collective),
                          std::memory_order_relaxed);
  page_->collective_bytes.store(bytes, std::memory_order_relaxed);
  page_->collective_started_ns.store(monotonic_ns(), std::memory_order_relaxed);
  beat();
}

int64_t StatusWriter::start_collective(Collective collective, int64_t bytes) {
  if (!observer_->is_capturing) note_collective(collective, bytes);
  if (observer_->collective_started) observer_->collective_started();
  if (!observer_->is_capturing) {
    return page_->collectives_started.fetch_add(1) + 1;
  }
  ++observer_->num_captured;
  observer_->captured_bytes += bytes;
  return 0;
}

void StatusWriter::begin_capture() {
  observer_->num_captured = 0;
  observer_->captured_bytes = 0;
  observer_->is_capturing = true;
}

StatusWriter::Captured StatusWriter::end_capture() {
  observer_->is_capturing = false;
  return {.count = observer_->num_captured, .bytes = observer_->captured_bytes};
}

void StatusWriter::start_captured(const Captured& captured) {
  if (captured.count == 0) return;
  note_collective(Collective::kAllReduce, captured.bytes);
  page_->collectives_started.fetch_add(captured.count);
}

void StatusWriter::finish_captured(const Captured& captured) {
  page_->collectives_finished.fetch_add(captured.count);
  beat();
}

void StatusWriter::finish_collective() {
  page_->collectives_finished.fetch_add(1);
  beat();
}

void StatusWriter::restart_collectives() {
  page_->collectives_started = 0;
  page_->collectives_finished = 0;
  page_->collective_failed = 0;
}

void StatusWriter::fail_collective(int64_t number) {
  if (number == 0) return;
  page_->collective_failed.store(number, std::memory_order_relaxed);
  finish_collective();
}

int64_t StatusWriter::collectives_started() const {
  return page_->collectives_started;
}

int64_t StatusWriter::last_collective_ns() const {
  return page_->collective_started_ns;
}

void StatusWriter::observe_collectives(std::function<void()> observer) {
  observer_->collective_started = std::move(observer);
}

bool StatusWriter::job_is_lost() const { return page_->job_is_lost != 0; }

}  // namespace lockstep::base
