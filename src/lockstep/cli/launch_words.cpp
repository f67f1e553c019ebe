#include "lockstep/cli/launch_words.h"

#include <fmt/format.h>

#include "lockstep/base/task_place.h"
#include "lockstep/error.h"

namespace lockstep::cli {
namespace {

constexpr const char* kRemedy =
    "the launcher decides: leave the flag out, or start with that many "
    "processes (lockstep run --nproc-per-node N, or lockstep train --nproc N)";

bool same_host(const std::string& left, const std::string& right) {
  const auto plain = [](const std::string& host) {
    return host == "localhost" ? std::string("127.0.0.1") : host;
  };
  return plain(left) == plain(right);
}

// The master address is fixed before a rank can read its flags.
std::string meeting_remedy(const char* flag, const std::string& word) {
  return fmt::format(
      "the launcher has chosen it already: give it to the launcher (lockstep "
      "run --{0} {1} PROGRAM ..., or torchrun --{0} {1} ...), or leave the "
      "flag out",
      flag, word);
}

void must_agree(const char* flag, std::optional<int64_t> word,
                const char* variable, const base::Environment& env) {
  if (!word || *word < 0) return;
  const auto value = base::find_integer(env, variable);
  if (value && *value != *word) {
    throw ConfigError(fmt::format("--{} {} contradicts {}={}; {}", flag, *word,
                                  variable, *value, kRemedy));
  }
}

void must_meet_at(const LaunchWords& words, const base::Environment& env) {
  const auto port = base::find_integer(env, "MASTER_PORT");
  const int64_t word = words.master_port.value_or(0);
  if (word > 0 && port && *port != word) {
    throw ConfigError(fmt::format(
        "--master_port {} contradicts MASTER_PORT={}; {}", word, *port,
        meeting_remedy("master_port", std::to_string(word))));
  }
  const auto address = base::find(env, "MASTER_ADDR");
  if (words.master_addr && address &&
      !same_host(*words.master_addr, *address)) {
    throw ConfigError(fmt::format(
        "--master_addr {} contradicts MASTER_ADDR={}; {}", *words.master_addr,
        *address, meeting_remedy("master_addr", *words.master_addr)));
  }
}

bool starts_with_any(const std::string& text,
                     std::initializer_list<const char*> beginnings) {
  for (const char* beginning : beginnings) {
    if (text.starts_with(beginning)) return true;
  }
  return false;
}

// Without a launcher the flags can only describe a world of one.
void must_be_alone(const LaunchWords& words) {
  if (words.world_size && *words.world_size > 1) {
    throw ConfigError(
        fmt::format("--world_size {} but no launcher started this process; {}",
                    *words.world_size, kRemedy));
  }
  if (words.local_rank && *words.local_rank > 0) {
    throw ConfigError(
        fmt::format("--local_rank {} but no launcher started this process; {}",
                    *words.local_rank, kRemedy));
  }
}

}  // namespace

void check_launch_words(const LaunchWords& words,
                        const base::Environment& env) {
  if (!starts_with_any(words.dist_url, {"env://", "tcp://", "file://"})) {
    throw ConfigError(fmt::format(
        "--dist_url '{}' is none of env://, tcp://HOST:PORT and file://PATH; "
        "omit it: the launcher sets the master address and port",
        words.dist_url));
  }
  if (!base::find(env, "WORLD_SIZE")) {
    const auto task = base::find_task_place(env);
    if (!task) {
      must_be_alone(words);
    } else {
      must_agree("world_size", words.world_size, task->size_variable.c_str(),
                 env);
    }
    return;
  }
  must_agree("world_size", words.world_size, "WORLD_SIZE", env);
  must_agree("local_rank", words.local_rank, "LOCAL_RANK", env);
  must_meet_at(words, env);
}

}  // namespace lockstep::cli
