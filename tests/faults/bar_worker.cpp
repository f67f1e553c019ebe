// A worker that talks as a training does.
//
// usage: bar_worker FOLDER. Each rank does what it reads, line by line, from
// the named pipe FOLDER/<rank>: "bar STEP", "info TEXT", "warn TEXT", "finish",
// "end"; or dies of "kill".
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/terminal.h"
#include "lockstep/track/console.h"

namespace lockstep {
namespace {

track::ConsoleOutput real_output(const base::Environment& environment) {
  return {
      .out =
          [](std::string_view text) { base::write_all(STDOUT_FILENO, text); },
      .err =
          [](std::string_view text) { base::write_all(STDERR_FILENO, text); },
      .columns =
          [environment] {
            return base::terminal_columns(STDOUT_FILENO, environment);
          },
      // Each frame is drawn.
      .now_ns = [now = int64_t{0}]() mutable { return now += 1'000'000'000; }};
}

void follow(std::istream& orders, track::Console& console) {
  std::string line;
  while (std::getline(orders, line)) {
    const auto space = std::min(line.find(' '), line.size() - 1);
    const std::string rest = line.substr(space + 1);
    const std::string order = line.substr(0, line.size() - rest.size());
    if (order == "bar ") {
      console.progress({.step = std::stoi(rest), .total_steps = 100});
    } else if (order == "info ") {
      console.info(rest);
    } else if (order == "warn ") {
      console.warn(rest);
    } else if (order == "finish") {
      console.finish_progress();
    } else if (order == "kill") {
      raise(SIGKILL);
    } else {
      return;
    }
  }
}

}  // namespace
}  // namespace lockstep

int main(int, char** values) {
  using namespace lockstep;
  const base::Environment environment = base::process_environment();
  const auto rank =
      static_cast<int>(base::find_integer(environment, "RANK").value_or(0));
  std::ifstream orders(std::string(values[1]) + "/" + std::to_string(rank));
  track::Console console({.rank = rank, .speaks = rank == 0},
                         real_output(environment));
  follow(orders, console);
  return 0;
}
