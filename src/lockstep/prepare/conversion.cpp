#include "lockstep/prepare/conversion.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <set>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "lockstep/prepare/episode_name.h"
#include "lockstep/prepare/local_parquet.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVal = "val";

bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem);
}

// Held while this process writes to the folder: two would remove each other's
// unfinished episodes.
FileDescriptor lock_folder(const fs::path& folder) {
  make_output_folder(folder);
  FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file) {
    throw IoError(fmt::format("cannot open folder '{}': {}", folder.string(),
                              errno_text()));
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw IoError(fmt::format(
        "another lockstep prepare writes to '{}'; wait until it has ended",
        folder.string()));
  }
  return file;
}

struct Job {
  size_t episode = 0;
  fs::path place = {};
};

class Conversion {
 public:
  Conversion(const EpisodeSource& source, const ConversionConfig& config)
      : source_(source), config_(config) {
    counts_.rejected = source.rejected();
  }

  ConversionCounts run(const ShowProgress& progress) {
    const FileDescriptor lock = lock_folder(config_.output);
    const std::vector<Job> jobs = open_jobs();
    run_workers(
        std::ssize(jobs), config_.workers,
        [&](int64_t i) { convert(jobs[static_cast<size_t>(i)]); }, progress);
    return std::move(counts_);
  }

 private:
  std::string split_of(size_t episode) const {
    if (const auto split = source_.split(episode)) return *split;
    const bool is_val =
        stable_fraction(source_.names()[episode]) < config_.val_fraction;
    return is_val ? kVal : config_.split;
  }

  std::vector<Job> open_jobs() {
    std::vector<Job> jobs;
    std::set<std::string> splits = {config_.split, kVal};
    for (size_t i = 0; i < source_.names().size(); ++i) {
      splits.insert(split_of(i));
    }
    for (const std::string& split : splits) {
      remove_partial_episodes(config_.output / split);
    }
    for (size_t i = 0; i < source_.names().size(); ++i) {
      const std::string split = split_of(i);
      const fs::path place = config_.output / split / source_.names()[i];
      if (!source_.split(i)) take_from_other_split(i, split, place);
      if (is_there(place) && !config_.overwrite) {
        ++counts_.num_kept;
        ++counts_.in_split[split];
      } else {
        jobs.push_back({.episode = i, .place = place});
      }
    }
    return jobs;
  }

  // An earlier run with another --val_fraction may have put it there; in both
  // splits at once no episode may be.
  void take_from_other_split(size_t episode, const std::string& split,
                             const fs::path& place) {
    const std::string& other = split == kVal ? config_.split : kVal;
    const fs::path old = config_.output / other / source_.names()[episode];
    if (other == split || !is_there(old)) return;
    std::error_code problem;
    if (is_there(place)) {
      fs::remove_all(old, problem);
    } else {
      make_output_folder(place.parent_path());
      fs::rename(old, place, problem);
    }
    if (problem) {
      throw IoError(fmt::format("cannot move '{}' to '{}': {}", old.string(),
                                place.string(), problem.message()));
    }
  }

  void convert(const Job& job) {
    try {
      EpisodeWriter writer(job.place);
      source_.read(job.episode, writer);
      writer.commit();
    } catch (const FormatError& problem) {
      const std::scoped_lock lock(mutex_);
      counts_.rejected.push_back(
          {.name = source_.names()[job.episode], .reason = problem.what()});
      return;
    }
    const std::scoped_lock lock(mutex_);
    ++counts_.num_made;
    ++counts_.in_split[job.place.parent_path().filename().string()];
  }

  const EpisodeSource& source_;
  const ConversionConfig& config_;
  std::mutex mutex_;  // Guards the counts.
  ConversionCounts counts_;
};

void sort_by_name(std::vector<Rejection>& rejected) {
  std::sort(
      rejected.begin(), rejected.end(),
      [](const Rejection& a, const Rejection& b) { return a.name < b.name; });
}

void check_finite(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    for (const float number : action) {
      if (!std::isfinite(number)) {
        throw FormatError("an action holds no finite number");
      }
    }
  }
}

}  // namespace

ConversionCounts convert_episodes(const EpisodeSource& source,
                                  const ConversionConfig& config,
                                  const ShowProgress& progress) {
  ConversionCounts counts = Conversion(source, config).run(progress);
  sort_by_name(counts.rejected);
  return counts;
}

ConversionCounts convert_in_place(const ConversionConfig& config,
                                  const ShowProgress& progress) {
  const FileDescriptor lock = lock_folder(config.output);
  const auto episodes = list_local_episodes(config.output);
  ConversionCounts counts;
  std::mutex mutex;
  const auto convert = [&](int64_t index) {
    const LocalEpisode& episode = episodes[static_cast<size_t>(index)];
    const fs::path csv = episode.folder / "actions.csv";
    const bool is_kept = is_there(csv) && !config.overwrite;
    try {
      if (!is_kept) {
        const auto actions =
            read_action_parquet(episode.folder / "actions.parquet");
        check_finite(actions);
        remove_leftovers(episode.folder);
        write_file_atomically(csv, action_csv_text(actions));
      }
    } catch (const FormatError& problem) {
      const std::scoped_lock guard(mutex);
      counts.rejected.push_back({.name = episode.split + "/" + episode.name,
                                 .reason = problem.what()});
      return;
    }
    const std::scoped_lock guard(mutex);
    ++(is_kept ? counts.num_kept : counts.num_made);
    ++counts.in_split[episode.split];
  };
  run_workers(std::ssize(episodes), config.workers, convert, progress);
  sort_by_name(counts.rejected);
  return counts;
}

}  // namespace lockstep
