#include "lockstep/launch/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

using Options = RunOptions;
using Text = std::string;

int64_t integer(const Text& value, const char* option, int64_t minimum) {
  const auto number = base::parse_integer(value);
  if (!number || *number < minimum || *number > INT32_MAX) {
    throw ConfigError(Text("--") + option + " '" + value +
                      "' must be an integer from " + std::to_string(minimum));
  }
  return *number;
}

double seconds(const Text& value, const char* option) {
  const auto number = base::parse_number(value);
  if (!number || !(*number >= 0 && *number <= base::kLongestTimeoutSeconds)) {
    throw ConfigError(Text("--") + option + " '" + value +
                      "' must be a number of seconds, at most 30 days");
  }
  return *number;
}

[[noreturn]] void refuse_option(const Text& sentence) {
  throw ConfigError(sentence);
}

// A flag on the command line has the value 1; a PET_ variable may hold
// anything.
bool flag(const Text& value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  refuse_option("'" + value + "' is neither 1 nor 0 (true, false)");
}

void set_nproc(Options& options, const Text& value) {
  if (value == "xpu") {
    refuse_option(
        "--nproc-per-node xpu is not supported: Lockstep runs on NVIDIA "
        "GPUs and CPUs");
  }
  if (value != "auto" && value != "gpu" && value != "cpu") {
    const auto number = base::parse_integer(value);
    if (!number || *number < 1 || *number > 65536) {
      refuse_option("--nproc-per-node '" + value +
                    "' must be a number from 1, or auto, gpu or cpu");
    }
  }
  options.nproc = value;
  options.is_nproc_given = true;
}

// MIN:MAX is torchrun's elastic form.
void set_nnodes(Options& options, const Text& value) {
  constexpr int64_t kMostNodes = 8192;  // Their results fit one message.
  const auto bounds = base::split(value, ':');
  for (const Text& bound : bounds) integer(bound, "nnodes", 1);
  const int64_t fewest = *base::parse_integer(bounds.front());
  const int64_t most = *base::parse_integer(bounds.back());
  if (bounds.size() > 2 || fewest > most || most > kMostNodes) {
    refuse_option("--nnodes '" + value +
                  "' must be a number of nodes, at most 8192, or MIN:MAX");
  }
  options.num_nodes = static_cast<int>(fewest);
  options.max_nodes = static_cast<int>(most);
}

void set_event_handler(Options& options, const Text& value) {
  if (value != "null" && value != "console") {
    refuse_option(
        "--event-log-handler " + value +
        " is not supported: other handlers than null and console are Python "
        "plugins of torchelastic; leave it out");
  }
  options.prints_events = value == "console";
}

void set_backend(Options& options, const Text& value) {
  if (value != "static" && value != "c10d") {
    refuse_option("--rdzv-backend " + value +
                  " is not supported: the launchers need no such service; "
                  "leave it out");
  }
  options.backend = value;
}

void set_ranks_filter(Options& options, const Text& value) {
  options.shown_ranks.clear();
  if (value.empty()) return;
  for (const Text& rank : base::split(value, ',')) {
    options.shown_ranks.insert(static_cast<int>(
        integer(Text(base::trim(rank)), "local-ranks-filter", 0)));
  }
}

// torchrun's list form: a double comma stands for one comma.
std::vector<Text> filters(const Text& value) {
  constexpr char kComma = '\x01';
  std::vector<Text> result;
  const Text escaped = base::replace_all(value, ",,", Text(1, kComma));
  for (Text& part : base::split(escaped, ',')) {
    if (part.empty()) continue;
    result.push_back(base::replace_all(std::move(part), Text(1, kComma), ","));
  }
  return result;
}

void set_signals(Options& options, const Text& value) {
  options.stop_signals.clear();
  for (const Text& name : base::split(value, ',')) {
    const auto signal = base::parse_signal(base::trim(name));
    if (!signal) {
      refuse_option("--signals-to-handle: '" + name +
                    "' is not a signal; use names such as SIGTERM,SIGINT");
    }
    options.stop_signals.push_back(*signal);
  }
}

void set_start_method(Options&, const Text& value) {
  if (value == "spawn" || value == "fork" || value == "forkserver") return;
  refuse_option("--start-method '" + value +
                "' must be spawn, fork or forkserver");
}

void set_recover(Options& options, const Text& value) {
  if (value != "memory" && value != "restart") {
    refuse_option("--recover '" + value + "' must be memory or restart");
  }
  options.recovers_in_memory = value == "memory";
}

void set_timeout(Options& options, const Text& value) {
  options.timeout = seconds(value, "timeout");
  if (*options.timeout <= 0)
    refuse_option("--timeout must be more than 0 seconds");
}

void set_port(Options& options, const Text& value) {
  const int64_t port = integer(value, "master-port", 0);
  if (port > 65535) refuse_option("--master-port " + value + " is above 65535");
  options.master_port = static_cast<int>(port);
}

constexpr auto kTable = std::to_array<RunOption>({
    {"help", 'h', nullptr, "Show this text.",
     [](Options& o, const Text&) { o.help = true; }},
    {"nproc-per-node", '\0', "N",
     "Processes: a number, auto (GPUs, else cores), gpu or cpu. Default 1.",
     set_nproc},
    {"nproc", '\0', "N",
     "Processes, one per GPU: a number, or auto. Short for --nproc-per-node.",
     set_nproc},
    {"share-gpus", '\0', nullptr,
     "Allow more processes than GPUs; several share one GPU.",
     [](Options& o, const Text& v) { o.share_gpus = flag(v); }},
    {"numa-binding", '\0', "MODE",
     "Keep each process on the CPUs near its GPU: node, socket, exclusive or "
     "core-complex.",
     [](Options& o, const Text& v) { o.numa_binding = parse_numa_mode(v); }},
    {"timeout", '\0', "SECONDS",
     "Limit of one collective; sets TORCH_DISTRIBUTED_TIMEOUT and "
     "NCCL_TIMEOUT.",
     set_timeout},
    {"shutdown-timeout", '\0', "SECONDS",
     "Time between SIGTERM and SIGKILL. Default 30.",
     [](Options& o, const Text& v) {
       o.shutdown_timeout = seconds(v, "shutdown-timeout");
     }},
    {"max-restarts", '\0', "N",
     "Restart all processes after a failure, at most N times. Default 0.",
     [](Options& o, const Text& v) {
       o.max_restarts = static_cast<int>(integer(v, "max-restarts", 0));
     }},
    {"recover", '\0', "HOW",
     "When a rank is killed or crashes: memory starts that rank again, and the "
     "others give it their state (default of lockstep train on the CPUs of one "
     "machine); restart ends or restarts all processes (default elsewhere).",
     set_recover},
    {"spares", '\0', "N",
     "With --recover memory: processes per node that wait, libtorch loaded, to "
     "take the place of a rank that dies. Default 1, on GPUs 0; only lockstep "
     "train.",
     [](Options& o, const Text& v) {
       o.num_spares = static_cast<int>(integer(v, "spares", 0));
     }},
    {"module", 'm', nullptr, "PROGRAM is a Python module (python -m).",
     [](Options& o, const Text& v) { o.module = flag(v); }},
    {"no-python", '\0', nullptr, "Run PROGRAM as given, also a .py file.",
     [](Options& o, const Text& v) { o.no_python = flag(v); }},
    {"run-path", '\0', nullptr,
     "PROGRAM is a Python file, run by runpy.run_path; beats --no-python.",
     [](Options& o, const Text& v) { o.run_path = flag(v); }},
    {"log-dir", '\0', "FOLDER",
     "Folder of log and error files. Default: a temporary folder.",
     [](Options& o, const Text& v) { o.log_dir = v; }},
    {"redirects", 'r', "STREAMS",
     "Write streams to files instead of the console: 1 stdout, 2 stderr, 3 "
     "both, or per local rank 0:3,1:2.",
     [](Options& o, const Text& v) {
       o.redirects = StreamMap::parse(v, "redirects");
     }},
    {"tee", 't', "STREAMS",
     "Write streams to files and, with a prefix, to the console.",
     [](Options& o, const Text& v) { o.tee = StreamMap::parse(v, "tee"); }},
    {"local-ranks-filter", '\0', "RANKS",
     "Show only these local ranks on the console, e.g. 0,1.", set_ranks_filter},
    {"duplicate-stdout-filters", '\0', "WORDS",
     "Copy stdout lines with one of these words to filtered_stdout.log.",
     [](Options& o, const Text& v) { o.stdout_filters = filters(v); }},
    {"duplicate-stderr-filters", '\0', "WORDS",
     "Copy stderr lines with one of these words to filtered_stderr.log.",
     [](Options& o, const Text& v) { o.stderr_filters = filters(v); }},
    {"role", '\0', "NAME", "Name in prefix and ROLE_NAME. Default 'default'.",
     [](Options& o, const Text& v) { o.role = v; }},
    {"signals-to-handle", '\0', "NAMES",
     "Signals that end the job. Default SIGTERM,SIGINT,SIGHUP,SIGQUIT.",
     set_signals},
    {"virtual-local-rank", '\0', nullptr,
     "Each process sees only its own GPU, and LOCAL_RANK=0.",
     [](Options& o, const Text& v) { o.virtual_local_rank = flag(v); }},
    {"nnodes", '\0', "N",
     "Number of nodes (machines), each with its own lockstep run, or MIN:MAX: "
     "the job shrinks and grows as nodes come and go. Default 1.",
     set_nnodes},
    {"node-rank", '\0', "R",
     "Number of this node, from 0. Node 0 is at --master-addr.",
     [](Options& o, const Text& v) {
       o.node_rank = static_cast<int>(integer(v, "node-rank", 0));
     }},
    {"master-addr", '\0', "ADDRESS",
     "MASTER_ADDR: this machine (127.0.0.1), or node 0 of several.",
     [](Options& o, const Text& v) { o.master_addr = v; }},
    {"master-port", '\0', "PORT",
     "MASTER_PORT. Default: a free port, kept for this job; with several nodes "
     "29500.",
     set_port},
    {"standalone", '\0', nullptr, "Choose the port, ignore any given one.",
     [](Options& o, const Text& v) { o.standalone = flag(v); }},
    {"rdzv-endpoint", '\0', "HOST[:PORT]",
     "Where nodes meet that join in any order; the launcher on that machine "
     "hosts. Default port 29400. On one node: its master address.",
     [](Options& o, const Text& v) { o.endpoint = v; }},
    {"rdzv-id", '\0', "NAME",
     "Name of the job, the same on all nodes (TORCHELASTIC_RUN_ID).",
     [](Options& o, const Text& v) { o.run_id = v; }},
    {"rdzv-conf", '\0', "SETTINGS",
     "join_timeout=600, last_call_timeout=30, keep_alive_interval=5, "
     "keep_alive_max_attempt=3: seconds for all nodes to come, for more than "
     "MIN of them, between signs of life, and how many may be missed.",
     [](Options& o, const Text& v) {
       o.rendezvous = parse_rendezvous_settings(v);
     }},
    {"rdzv-secret-file", '\0', "FILE",
     "Secret of the job, the same on all nodes: launchers without it cannot "
     "join. Readable by its owner only.",
     [](Options& o, const Text& v) { o.secret_file = v; }},
    {"rdzv-no-secret", '\0', nullptr,
     "Let any launcher that reaches --rdzv-endpoint join.",
     [](Options& o, const Text& v) { o.no_secret = flag(v); }},
    {"rdzv-backend", '\0', "NAME",
     "static: --node-rank numbers the nodes. c10d: they meet at "
     "--rdzv-endpoint.",
     set_backend},
    {"local-addr", '\0', "ADDRESS", "Stands for a missing --master-addr.",
     [](Options& o, const Text& v) { o.local_addr = v; }},
    {"monitor-interval", '\0', "SECONDS",
     "Accepted; processes are watched without an interval.",
     [](Options&, const Text& v) { seconds(v, "monitor-interval"); }},
    {"start-method", '\0', "NAME", "Accepted; processes are always executed.",
     set_start_method},
    {"use-env", '\0', nullptr,
     "For lockstep launch: no --local-rank=N argument for PROGRAM.",
     [](Options& o, const Text& v) { o.use_env = flag(v); }},
    {"event-log-handler", '\0', "NAME",
     "null, or console: print torchelastic's events of the workers on stderr.",
     set_event_handler},
    {"logs-specs", '\0', "NAME", nullptr,
     [](Options&, const Text&) {
       refuse_option(
           "--logs-specs is not supported: it names a Python plugin; use "
           "--log-dir, --redirects and --tee");
     }},
});

}  // namespace

std::span<const RunOption> run_option_table() { return kTable; }

const RunOption* find_run_option(std::string_view name) {
  const Text spelled = base::replace_all(Text(name), "_", "-");
  for (const RunOption& option : kTable) {
    if (spelled == option.name) return &option;
  }
  return nullptr;
}

std::vector<const RunOption*> find_run_options_beginning(
    std::string_view beginning) {
  const Text spelled = base::replace_all(Text(beginning), "_", "-");
  std::vector<const RunOption*> found;
  for (const RunOption& option : kTable) {
    if (!std::string_view(option.name).starts_with(spelled)) continue;
    const bool is_synonym = std::any_of(
        found.begin(), found.end(),
        [&](const RunOption* other) { return other->apply == option.apply; });
    if (!is_synonym) found.push_back(&option);
  }
  return found;
}

std::string help_row(const RunOption& option) {
  constexpr size_t kIndent = 30;
  constexpr size_t kWidth = 80;
  std::string left = "  ";
  if (option.short_name != '\0')
    left += fmt::format("-{}, ", option.short_name);
  left += fmt::format("--{}", option.name);
  if (option.value_name != nullptr)
    left += fmt::format(" {}", option.value_name);
  std::string text;
  std::string line = left;
  if (line.size() + 2 > kIndent) {
    text = line + "\n";
    line.clear();
  }
  line.resize(kIndent, ' ');
  for (const std::string& word : base::split(option.help, ' ')) {
    if (line.size() + word.size() > kWidth) {
      text += std::string(line, 0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(kIndent, ' ');
    }
    line += word + " ";
  }
  return text + std::string(line, 0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace lockstep::launch
