#include "lockstep/run/elastic_job.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::run {
namespace {

constexpr std::string_view kFirstStartMark = "# first start: ";
constexpr const char* kStartFile = ".start";

// "4 processes" -> 4
std::optional<int64_t> leading_number(std::string_view text) {
  text = base::trim(text);
  return base::parse_integer(text.substr(0, text.find(' ')));
}

}  // namespace

bool is_elastic(const base::Environment& environment) {
  return base::find(environment, "LOCKSTEP_ELASTIC").has_value();
}

std::string first_start_line(const FirstStart& first) {
  return fmt::format(
      "{}{} processes, {} samples per step, {} per micro-batch\n",
      kFirstStartMark, first.num_processes, first.global_batch,
      first.micro_batch);
}

std::optional<FirstStart> read_first_start(const std::string& config) {
  for (const std::string& line : base::split(config, '\n')) {
    if (!line.starts_with(kFirstStartMark)) continue;
    const auto parts = base::split(line.substr(kFirstStartMark.size()), ',');
    if (parts.size() != 3) return std::nullopt;
    std::array<int64_t, 3> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto number = leading_number(parts[i]);
      if (!number || *number < 1) return std::nullopt;
      numbers[i] = *number;
    }
    return FirstStart{.num_processes = static_cast<int>(numbers[0]),
                      .global_batch = numbers[1],
                      .micro_batch = numbers[2]};
  }
  return std::nullopt;
}

RunFence::RunFence(std::filesystem::path folder, std::string job,
                   int64_t number)
    : folder_(std::move(folder)), job_(std::move(job)), number_(number) {}

std::optional<RunFence> RunFence::from_environment(
    const std::filesystem::path& folder, const base::Environment& environment) {
  const auto number = base::find_integer(environment, "LOCKSTEP_GENERATION");
  const auto job = base::find(environment, "LOCKSTEP_JOB");
  if (!number || !job) return std::nullopt;
  return RunFence(folder, *job, *number);
}

std::filesystem::path RunFence::file() const { return folder_ / kStartFile; }

void RunFence::claim() const {
  check();
  base::write_file_atomically(file(), fmt::format("{} {}\n", number_, job_));
}

// What another job has written does not count: the lock of the folder keeps
// two jobs apart.
void RunFence::check() const {
  const auto text = base::try_read_file(file());
  if (!text) return;
  const std::string_view line = base::trim(*text);
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.substr(space + 1) != job_) return;
  const auto newest = leading_number(line);
  if (!newest || *newest <= number_) return;
  throw PeerError(fmt::format(
      "--save_dir {} belongs to a newer start of this job (number {}, this one "
      "is {}): the job goes on without this node, which was cut off from it; "
      "this start writes nothing more",
      folder_.string(), *newest, number_));
}

}  // namespace lockstep::run
