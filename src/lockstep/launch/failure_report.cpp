#include "lockstep/launch/failure_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/printable.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/ranks_text.h"

namespace lockstep::launch {
namespace {

std::string indented(const std::string& text) {
  return base::replace_all(std::string(base::trim(text)), "\n", "\n  ");
}

// torchrun shows the Python traceback where there is one; its last line is the
// message.
std::string own_message(const base::ErrorReport& error) {
  return indented(base::printable_text(
      error.callstack.empty() ? error.message : error.callstack));
}

std::string crash_text(const Failure& failure) {
  std::string text;
  if (!failure.position.empty()) {
    text += "\n  position  : " + failure.position;
  }
  if (!failure.crash) return text;
  text += "\n  stack     : " + failure.crash->cause;
  for (size_t i = 0; i < failure.crash->stack.size(); ++i) {
    text += fmt::format("\n    #{} {}", i, failure.crash->stack[i]);
  }
  return text;
}

std::string explanation(const Failure& failure) {
  if (failure.error) return own_message(*failure.error);
  std::string text;
  if (failure.exit_code < 0) {
    const int signal = -failure.exit_code;
    text = fmt::format("Signal {} ({}) received by PID {}", signal,
                       base::signal_name(signal), failure.pid);
    const std::string meaning = failure.meaning.empty()
                                    ? base::signal_meaning(signal)
                                    : failure.meaning;
    if (!meaning.empty()) text += "\n  meaning   : " + meaning;
    if (failure.peak_bytes > 0) {
      text += fmt::format("\n  memory    : {} resident at its peak",
                          base::bytes_text(failure.peak_bytes));
    }
    text += crash_text(failure);
  } else {
    text = "<N/A> (the worker wrote no error file)";
  }
  if (failure.last_lines.empty()) return text;
  text += "\n  last lines of its stderr:";
  for (const std::string& line : failure.last_lines) text += "\n    " + line;
  return text;
}

bool is_same_error(const Failure& a, const Failure& b) {
  return a.exit_code == b.exit_code && a.error && b.error &&
         a.error->message == b.error->message &&
         a.error->callstack == b.error->callstack;
}

// The host as torchrun names it, with the node's number where there are
// several.
std::string host_text(const Failure& failure, const std::string& host) {
  return failure.place.empty() ? host : failure.place;
}

std::string lost_node_block(size_t index, const Failure& failure) {
  std::vector<int> ranks;
  for (int i = 0; i < failure.num_lost_ranks; ++i) {
    ranks.push_back(failure.rank + i);
  }
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  lost      : the whole node, {}\n"
      "  traceback : {}\n",
      index, base::local_timestamp(static_cast<int64_t>(failure.unix_time)),
      failure.place, ranks_text(ranks, failure.num_lost_ranks + 1),
      explanation(failure));
}

std::string failure_block(size_t index, const std::string& host,
                          const Failure& failure) {
  if (failure.num_lost_ranks > 0) return lost_node_block(index, failure);
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {})\n"
      "  error_file: {}\n"
      "  traceback : {}\n",
      index, base::local_timestamp(static_cast<int64_t>(failure.unix_time)),
      host_text(failure, host), failure.rank, failure.local_rank,
      failure.exit_code, failure.pid,
      failure.error ? failure.error_file : "<N/A>", explanation(failure));
}

// The ranks, the root cause's too, that report its error.
std::vector<int> ranks_alike(std::span<const Failure> failures, size_t root) {
  std::vector<int> ranks;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (i == root || is_same_error(failures[i], failures[root])) {
      ranks.push_back(failures[i].rank);
    }
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace

// A process with much memory on a GPU closes
// its connections seconds before it is dead, so that its victims end first.
bool is_consequence(const Failure& failure) {
  if (failure.num_lost_ranks > 0) return false;
  // One that the launcher ended while it reported has the signal's code.
  if (failure.error && (failure.exit_code == kPeerExitCode ||
                        failure.error->message.starts_with("PeerError: "))) {
    return true;
  }
  const auto blames_peer = [](std::string_view text) {
    return text.find("Connection closed by peer") != std::string_view::npos ||
           text.find("Connection reset by peer") != std::string_view::npos;
  };
  if (failure.error) return blames_peer(failure.error->message);
  return std::any_of(failure.last_lines.begin(), failure.last_lines.end(),
                     blames_peer);
}

bool is_input_error(const Failure& failure) {
  return failure.exit_code == kConfigExitCode && failure.error &&
         failure.error->message.starts_with("ConfigError: ");
}

size_t find_root_cause(std::span<const Failure> failures) {
  const auto first = std::min_element(
      failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
        return std::pair(is_consequence(a), a.unix_time) <
               std::pair(is_consequence(b), b.unix_time);
      });
  return static_cast<size_t>(first - failures.begin());
}

int exit_code_for(std::span<const Failure> failures) {
  // One that was ended and still reported its error had begun to exit.
  const auto has_own_code = [](const Failure& failure) {
    if (failure.on_request) return failure.error && failure.exit_code > 0;
    return failure.exit_code != 0;
  };
  const auto order = [&](const Failure& failure) {
    return std::tuple(!has_own_code(failure), is_consequence(failure),
                      failure.unix_time);
  };
  const auto source = std::min_element(
      failures.begin(), failures.end(),
      [&](const Failure& a, const Failure& b) { return order(a) < order(b); });
  if (source->exit_code < 0) return 128 - source->exit_code;
  return source->exit_code <= 255 ? source->exit_code : 1;
}

std::string ending_text(const Failure& failure) {
  if (failure.exit_code < 0) return base::signal_name(-failure.exit_code);
  if (failure.exit_code == 0) return "exited with 0 before the others";
  return "exit code " + std::to_string(failure.exit_code);
}

std::string failure_report(const std::string& title, const std::string& host,
                           std::span<const Failure> failures,
                           const std::string& extra, int num_ranks) {
  const std::string border(kFrameWidth, '=');
  const std::string section(kFrameWidth, '-');
  const size_t root = find_root_cause(failures);
  std::string others;
  size_t index = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (i == root || is_same_error(failures[i], failures[root])) continue;
    others += failure_block(++index, host, failures[i]);
  }
  const std::vector<int> alike = ranks_alike(failures, root);
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  std::string text = border + "\n" + title + " FAILED\n" + section +
                     "\nFailures:\n" + others + section +
                     "\nRoot Cause (first observed failure):\n" +
                     failure_block(0, host, failures[root]);
  if (alike.size() > 1) {
    text += "  the same error on " + ranks_text(alike, num_ranks) + "\n";
  }
  if (!extra.empty()) text += section + "\n" + extra;
  return text + border + "\n";
}

}  // namespace lockstep::launch
