// The options of `lockstep run`: those of torchrun, and a few of its own.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/launch/numa.h"
#include "lockstep/launch/rendezvous_settings.h"
#include "lockstep/launch/streams.h"

namespace lockstep::launch {

struct RunOptions {
  bool help = false;              // --help: nothing else is checked
  std::string nproc = "1";        // a number, auto, gpu or cpu
  bool is_nproc_given = false;    // false: nproc is the default
  int num_nodes = 1;              // --nnodes N, or MIN of MIN:MAX
  int max_nodes = 1;              // MAX of --nnodes MIN:MAX, or N
  std::optional<int> node_rank;   // --node-rank
  std::string backend;            // --rdzv-backend; empty: not given
  RendezvousSettings rendezvous;  // --rdzv-conf
  std::string secret_file;        // --rdzv-secret-file
  bool no_secret = false;         // --rdzv-no-secret
  bool standalone = false;        // torchrun's word for "choose a port"
  std::string run_id = "none";    // --rdzv-id
  std::string endpoint;           // --rdzv-endpoint, host:port
  std::string role = "default";   // part of the tee prefix
  int max_restarts = 0;           // restarts of the whole group
  std::optional<bool> recovers_in_memory;  // --recover memory or restart
  std::optional<int> num_spares;           // --spares
  std::string master_addr;                 // empty: 127.0.0.1
  std::optional<int> master_port;          // no value or 0: a free one
  std::string local_addr;                  // stands for a missing --master-addr
  std::string log_dir;                     // empty: a fresh temporary folder
  StreamMap redirects;
  StreamMap tee;
  std::set<int> shown_ranks;  // --local-ranks-filter; empty: all
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  std::vector<int> stop_signals;  // signals that end the job
  bool virtual_local_rank = false;
  bool share_gpus = false;
  std::optional<NumaMode> numa_binding;
  std::optional<double> timeout;  // of collectives, in seconds
  double shutdown_timeout = 30;   // between SIGTERM and SIGKILL, in seconds
  bool module = false;            // PROGRAM is a Python module
  bool no_python = false;         // PROGRAM runs as given, also a .py file
  bool run_path = false;          // PROGRAM is run by Python's runpy
  bool use_env = false;           // --use-env, for lockstep launch
  bool prints_events = false;     // --event-log-handler console
  bool is_recipe = false;         // PROGRAM is the worker of lockstep train
  std::string program;
  std::vector<std::string> arguments;  // of the program, untouched
};

// Reads what follows `lockstep run`. Both spellings (--log-dir, --log_dir),
// `--option value` and `--option=value`, and beginnings of a long name that fit
// one option only. PET_<OPTION> variables stand for
// missing options. Everything from PROGRAM on belongs to the program. Throws
// ConfigError.
RunOptions parse_run_options(std::span<const std::string> arguments,
                             const base::Environment& environment);

std::string run_help();

}  // namespace lockstep::launch
