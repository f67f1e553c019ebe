#include "lockstep/launch/group.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "lockstep/base/crash_handler.h"
#include "lockstep/base/place_change.h"
#include "lockstep/error.h"
#include "lockstep/launch/spawn.h"
#include "lockstep/launch/worker_environment.h"
#include "lockstep/net/job_secret.h"

namespace lockstep::launch {
namespace {

// One stream of one worker: its name, console and options.
struct StreamSetup {
  Stream stream;
  const char* log_name;
  ConsoleStream* console;
  const std::vector<std::string>* filters;
  WorkerLogFile* filtered;
  LogLosses* losses;
  ErrorLines* errors = nullptr;  // of stderr
};

// The worker's end of a stream; closed here once the worker runs.
struct WorkerEndpoint {
  base::FileDescriptor owner;
  int fd = -1;      // -1: inherited from this process
  int columns = 0;  // of the terminal to which the pipe leads; 0: to none
};

bool is_shown(const RunOptions& options, int local_rank) {
  return options.shown_ranks.empty() ||
         options.shown_ranks.count(local_rank) > 0;
}

WorkerEndpoint pipe_to(OutputTarget target, Worker& worker) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw IoError("cannot make a pipe: " + base::errno_text());
  }
  base::FileDescriptor write_end(ends[1]);
  worker.streams.emplace_back(base::FileDescriptor(ends[0]), std::move(target));
  const int fd = write_end.get();
  return {.owner = std::move(write_end), .fd = fd};
}

WorkerEndpoint connect_stream(const Plan& plan, const StreamSetup& setup,
                              Worker& worker) {
  const RunOptions& options = plan.options;
  const int local_rank = worker.local_rank;
  const bool has_tee = options.tee.has(local_rank, setup.stream);
  const bool has_log =
      has_tee || options.redirects.has(local_rank, setup.stream);
  const auto log_path = worker.folder / setup.log_name;
  if (setup.stream == Stream::kErr) worker.has_stderr_log = has_log;
  if (has_log && !has_tee) {
    base::FileDescriptor log = open_log_file(log_path);
    const int fd = log.get();
    return {.owner = std::move(log), .fd = fd};
  }
  const bool shown = is_shown(options, local_rank);
  const bool filters = !setup.filters->empty();
  const bool is_unchanged = shown && !has_log && !filters;
  // Nothing to mix with: a lone worker keeps the real terminal.
  if (plan.num_processes == 1 && is_unchanged) return {};
  OutputTarget target;
  target.console = shown ? setup.console : nullptr;
  target.nccl_prefix = nccl_prefix(worker.rank);
  if (has_tee) {
    target.prefix = line_prefix(plan, local_rank, worker.rank);
    target.log = std::make_unique<WorkerLogFile>(log_path, setup.losses);
  }
  if (shown && !has_tee) {
    target.errors = setup.errors;
    target.rank = worker.rank;
  }
  if (filters) {
    target.filters = *setup.filters;
    target.filtered = setup.filtered;
    target.filtered_prefix = line_prefix(plan, local_rank, worker.rank);
  }
  if (setup.stream == Stream::kErr)
    worker.stderr_stream = worker.streams.size();
  WorkerEndpoint endpoint = pipe_to(std::move(target), worker);
  if (is_unchanged) endpoint.columns = setup.console->columns();
  return endpoint;
}

std::unique_ptr<WorkerLogFile> open_filtered(
    const std::vector<std::string>& filters, const std::filesystem::path& path,
    LogLosses* losses) {
  if (filters.empty()) return nullptr;
  return std::make_unique<WorkerLogFile>(path, losses);
}

CpuList cpus_of(const Plan& plan, int rank) {
  if (plan.worker_cpus.empty()) return {};
  return plan.worker_cpus[static_cast<size_t>(rank)];
}

std::map<std::string, int> kept_fds(const Worker& worker, int secret_fd) {
  std::map<std::string, int> fds = {{"LOCKSTEP_STATUS_FD", worker.status.fd()}};
  if (secret_fd >= 0) fds[net::kSecretVariable] = secret_fd;
  if (worker.slots) fds[base::kSlotFileVariable] = worker.slots->fd();
  return fds;
}

pid_t start_process(const GroupPlace& place, const SpawnRequest& request,
                    Spawner& spawner) {
  if (place.spares != nullptr) {
    if (const auto pid = place.spares->take(request)) return *pid;
  }
  return spawner.start(request);
}

struct WorkerStart {
  const Plan& plan;
  const GroupPlace& place;
  Consoles consoles;
};

// Fills a worker whose rank is set.
void start_worker(const WorkerStart& start, WorkerGroup& group, Worker& worker,
                  Spawner& spawner) {
  const auto& [plan, place, consoles] = start;
  const RunOptions& options = plan.options;
  const int rank = worker.local_rank;
  const WorkerEndpoint stdout_end = connect_stream(
      plan,
      {Stream::kOut, "stdout.log", &consoles.out, &options.stdout_filters,
       group.filtered_stdout.get(), place.losses},
      worker);
  const WorkerEndpoint stderr_end = connect_stream(
      plan,
      {Stream::kErr, "stderr.log", &consoles.err, &options.stderr_filters,
       group.filtered_stderr.get(), place.losses, group.errors.get()},
      worker);
  worker.pid = start_process(
      place,
      {.file = plan.command.file,
       .arguments = arguments_for(plan.command, rank),
       .environment = worker_environment(
           plan, {.local_rank = rank,
                  .world = place.world,
                  .status_fd = worker.status.fd(),
                  .secret_fd = place.secret_fd,
                  .slots_fd = worker.slots ? worker.slots->fd() : -1,
                  .terminal_columns = stdout_end.columns,
                  .error_file = worker.folder / "error.json"}),
       .stdout_fd = stdout_end.fd,
       .stderr_fd = stderr_end.fd,
       .kept_fds = kept_fds(worker, place.secret_fd),
       .signal_mask = place.signal_mask,
       .cpus = cpus_of(plan, rank)},
      spawner);
}

void require_exec(const Plan& plan, Spawner& spawner) {
  if (const auto number = spawner.wait_for_exec()) {
    throw exec_error(plan.command, *number);
  }
}

}  // namespace

WorkerGroup start_group(const Plan& plan, const GroupPlace& place,
                        ConsoleStream& out, ConsoleStream& err) {
  const RunOptions& options = plan.options;
  WorkerGroup group;
  group.errors = std::make_unique<ErrorLines>(err, place.world.num_ranks);
  group.filtered_stdout =
      open_filtered(options.stdout_filters,
                    place.folder / "filtered_stdout.log", place.losses);
  group.filtered_stderr =
      open_filtered(options.stderr_filters,
                    place.folder / "filtered_stderr.log", place.losses);
  Spawner spawner;
  for (int rank = 0; rank < plan.num_processes; ++rank) {
    Worker& worker = group.workers.emplace_back();
    worker.local_rank = rank;
    worker.rank = place.world.first_rank + rank;
    worker.folder = place.folder / std::to_string(rank);
    if (plan.recovers_in_memory) {
      worker.slots = std::make_shared<base::SlotFile>();
      worker.recovery.announce(place.generation);
    }
    start_worker({plan, place, {out, err}}, group, worker, spawner);
  }
  require_exec(plan, spawner);
  return group;
}

bool continue_group(const Plan& plan, const GroupPlace& place,
                    Consoles consoles, WorkerGroup& group) {
  group.errors->set_num_ranks(place.world.num_ranks);
  for (Worker& worker : group.workers) {
    worker.rank = place.world.first_rank + worker.local_rank;
    base::write_place_change(
        *worker.slots, place.generation,
        {.variables = world_variables(plan, place.world, worker.local_rank),
         .store_secret = place.world.store_secret});
    if (worker.end) {
      for (OutputStream& stream : worker.streams) stream.pump_all();
      replace_worker(plan, place, consoles, group, worker);
      continue;
    }
    for (OutputStream& stream : worker.streams) {
      stream.set_rank(worker.rank,
                      line_prefix(plan, worker.local_rank, worker.rank));
    }
    if (!worker.recovery.announce(place.generation)) return false;
  }
  return true;
}

void replace_worker(const Plan& plan, const GroupPlace& place,
                    Consoles consoles, WorkerGroup& group, Worker& worker) {
  Worker next;
  next.local_rank = worker.local_rank;
  next.rank = worker.rank;
  next.folder = worker.folder;
  next.slots = worker.slots;
  next.recovery.announce(place.generation);
  std::error_code ignored;
  std::filesystem::remove(worker.folder / "error.json", ignored);
  std::filesystem::remove(worker.folder / base::kCrashFileName, ignored);
  Spawner spawner;
  start_worker({plan, place, consoles}, group, next, spawner);
  worker = std::move(next);
  require_exec(plan, spawner);
}

}  // namespace lockstep::launch
