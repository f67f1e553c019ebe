// Starting all workers of one attempt.
#pragma once

#include <csignal>
#include <filesystem>
#include <memory>
#include <vector>

#include "lockstep/launch/console_stream.h"
#include "lockstep/launch/error_lines.h"
#include "lockstep/launch/job_world.h"
#include "lockstep/launch/log_file.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/spares.h"
#include "lockstep/launch/worker.h"

namespace lockstep::launch {

// What an attempt is given by the keeper.
struct GroupPlace {
  JobWorld world = {};
  int secret_fd = -1;            // -1: the workers get none
  std::filesystem::path folder;  // of this attempt, with one folder per rank
  sigset_t signal_mask{};        // of the workers
  LogLosses* losses = nullptr;   // not owned; lines that log files lose
  int generation = 0;            // how often ranks were replaced before
  Spares* spares = nullptr;      // not owned; nullptr: there are none
};

struct WorkerGroup {
  std::unique_ptr<ErrorLines> errors;  // outlives the streams of workers
  std::vector<Worker> workers;
  std::unique_ptr<WorkerLogFile> filtered_stdout;  // --duplicate-stdout-filters
  std::unique_ptr<WorkerLogFile> filtered_stderr;
};

// Throws ProgramError when the program cannot be executed and IoError when the
// system has no room; started workers are then still there for the caller to
// end.
WorkerGroup start_group(const Plan& plan, const GroupPlace& place,
                        ConsoleStream& out, ConsoleStream& err);

struct Consoles {
  ConsoleStream& out;
  ConsoleStream& err;
};

// The workers that live go on in the world of `place`, as whichever ranks they
// are there; those that have ended are started again. False: one that lives has
// done all its work and meets nobody any more. Throws as start_group().
bool continue_group(const Plan& plan, const GroupPlace& place,
                    Consoles consoles, WorkerGroup& group);

// Starts the rank of a worker that has ended once more, in its place. Throws
// as start_group().
void replace_worker(const Plan& plan, const GroupPlace& place,
                    Consoles consoles, WorkerGroup& group, Worker& worker);

}  // namespace lockstep::launch
