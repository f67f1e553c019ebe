#include "lockstep/datasets/conversion/conversion.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/datasets/conversion/episode_name.h"
#include "lockstep/datasets/conversion/local_parquet.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVal = "val";

// Held while this process writes to the folder: two would remove each other's
// unfinished episodes.
base::FileDescriptor lock_folder(const fs::path& folder) {
  base::make_output_folder(folder);
  base::FileDescriptor file(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file) {
    throw IoError(fmt::format("cannot open folder '{}': {}", folder.string(),
                              base::errno_text()));
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

// Episodes for one child, which reads them one after the other.
struct Batch {
  std::vector<Job> jobs = {};
  size_t num_ended = 0;   // Jobs made or rejected.
  size_t num_deaths = 0;  // Children in a row that finished no job.
};

// A library that dies on one episode of a file usually dies on all of them.
constexpr size_t kMostDeaths = 3;

class Conversion {
 public:
  Conversion(EpisodeSource& source, const ConversionConfig& config,
             const base::ShowProgress& progress)
      : source_(source),
        config_(config),
        progress_(progress),
        lock_(lock_folder(config.output)) {
    counts_.rejected = source.rejected();
  }

  ConversionCounts run() {
    const std::vector<Job> jobs = open_jobs();
    num_jobs_ = std::ssize(jobs);
    const int64_t num_children = base::num_workers(num_jobs_, config_.workers);
    try {
      ChildPool pool(num_children, config_.limits);
      for (Batch& batch : batches_of(jobs, num_children)) {
        add_batch(pool, std::move(batch));
      }
      pool.run();
    } catch (...) {
      remove_partial();
      throw;
    }
    remove_partial();
    return std::move(counts_);
  }

 private:
  std::string split_of(size_t episode) const {
    if (const auto split = source_.split(episode)) return *split;
    const bool is_val =
        stable_fraction(source_.names()[episode]) < config_.val_fraction;
    return is_val ? kVal : config_.split;
  }

  // What killed processes left.
  void remove_partial() const {
    std::set<std::string> splits = {config_.split, kVal};
    for (size_t i = 0; i < source_.names().size(); ++i) {
      splits.insert(split_of(i));
    }
    for (const std::string& split : splits) {
      remove_partial_episodes(config_.output / split);
    }
  }

  std::vector<Job> open_jobs() {
    remove_partial();
    std::vector<Job> jobs;
    for (size_t i = 0; i < source_.names().size(); ++i) {
      const std::string split = split_of(i);
      const fs::path place = config_.output / split / source_.names()[i];
      if (!source_.split(i)) take_from_other_split(i, split, place);
      if (base::path_exists(place) && !config_.overwrite) {
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
    if (other == split || !base::path_exists(old)) return;
    std::error_code problem;
    if (base::path_exists(place)) {
      fs::remove_all(old, problem);
    } else {
      base::make_output_folder(place.parent_path());
      fs::rename(old, place, problem);
    }
    if (problem) {
      throw IoError(fmt::format("cannot move '{}' to '{}': {}", old.string(),
                                place.string(), problem.message()));
    }
  }

  // A group becomes as many batches of neighbours as there are children.
  std::vector<Batch> batches_of(const std::vector<Job>& jobs,
                                int64_t num_children) const {
    std::vector<Batch> batches;
    std::map<std::string, std::vector<Job>> groups;
    for (const Job& job : jobs) {
      const std::string group = source_.group(job.episode);
      if (group.empty()) {
        batches.push_back({.jobs = {job}});
      } else {
        groups[group].push_back(job);
      }
    }
    const auto most = static_cast<size_t>(num_children);
    for (const auto& [name, members] : groups) {
      const size_t num_parts = std::min(most, members.size());
      for (size_t part = 0; part < num_parts; ++part) {
        const auto at = [&](size_t i) {
          return members.begin() +
                 static_cast<ptrdiff_t>(members.size() * i / num_parts);
        };
        batches.push_back({.jobs = {at(part), at(part + 1)}});
      }
    }
    return batches;
  }

  void add_batch(ChildPool& pool, Batch the_batch) {
    const auto batch = std::make_shared<Batch>(std::move(the_batch));
    pool.add(
        {.work = [this, batch](
                     const ChildChannel& parent) { convert(*batch, parent); },
         .take =
             [this, batch](std::string_view reason) {
               batch->num_deaths = 0;
               end_job(*batch, reason);
             },
         .end =
             [this, batch, &pool](const ChildFailure& failure) {
               end_child(pool, *batch, failure);
             }});
  }

  // In the child. Reports each episode: why it is rejected, or nothing.
  void convert(const Batch& batch, const ChildChannel& parent) {
    // Else the lock would last as long as a child that is slow to die.
    lock_.reset();
    for (size_t i = batch.num_ended; i < batch.jobs.size(); ++i) {
      try {
        EpisodeWriter writer(batch.jobs[i].place, [&] { parent.alive(); });
        source_.read(batch.jobs[i].episode, writer);
        parent.begin_waiting();
        writer.commit();
        parent.send("");
      } catch (const FormatError& problem) {
        parent.send(problem.what());
      }
    }
  }

  void end_job(Batch& batch, std::string_view reason) {
    if (batch.num_ended == batch.jobs.size()) return;
    const Job& job = batch.jobs[batch.num_ended++];
    if (reason.empty()) {
      ++counts_.num_made;
      ++counts_.in_split[job.place.parent_path().filename().string()];
    } else {
      counts_.rejected.push_back({.name = source_.names()[job.episode],
                                  .reason = std::string(reason)});
    }
    if (progress_) progress_(++num_ended_, num_jobs_);
  }

  // The episode at which the child died is rejected; the next child goes on
  // behind it.
  void end_child(ChildPool& pool, Batch& batch, const ChildFailure& failure) {
    if (batch.num_ended == batch.jobs.size()) return;
    const std::string reason =
        failure.empty() ? "the process that read it ended early" : failure;
    end_job(batch, reason);
    if (++batch.num_deaths >= kMostDeaths) {
      while (batch.num_ended < batch.jobs.size()) end_job(batch, reason);
    }
    if (batch.num_ended < batch.jobs.size()) add_batch(pool, batch);
  }

  EpisodeSource& source_;
  const ConversionConfig& config_;
  const base::ShowProgress& progress_;
  base::FileDescriptor lock_;
  int64_t num_jobs_ = 0;
  int64_t num_ended_ = 0;
  ConversionCounts counts_;
};

void sort_by_name(std::vector<Rejection>& rejected) {
  std::sort(
      rejected.begin(), rejected.end(),
      [](const Rejection& a, const Rejection& b) { return a.name < b.name; });
}

void check_finite(const std::vector<formats::Action>& actions) {
  for (const formats::Action& action : actions) {
    for (const float number : action) {
      if (!std::isfinite(number)) {
        throw FormatError("an action holds no finite number");
      }
    }
  }
}

void write_action_csv(const fs::path& episode) {
  const auto actions = read_action_parquet(episode / "actions.parquet");
  check_finite(actions);
  base::remove_leftovers(episode);
  base::write_file_atomically(episode / "actions.csv",
                              formats::action_csv_text(actions));
}

}  // namespace

ConversionCounts convert_episodes(EpisodeSource& source,
                                  const ConversionConfig& config,
                                  const base::ShowProgress& progress) {
  ConversionCounts counts = Conversion(source, config, progress).run();
  sort_by_name(counts.rejected);
  return counts;
}

ConversionCounts convert_in_place(const ConversionConfig& config,
                                  const base::ShowProgress& progress) {
  base::FileDescriptor lock = lock_folder(config.output);
  const auto episodes = list_local_episodes(config.output);
  ConversionCounts counts;
  int64_t num_ended = 0;
  ChildPool pool(base::num_workers(std::ssize(episodes), config.workers),
                 config.limits);
  for (const LocalEpisode& episode : episodes) {
    const bool is_kept =
        base::path_exists(episode.folder / "actions.csv") && !config.overwrite;
    const auto end = [&, is_kept](const ChildFailure& failure) {
      if (failure.empty()) {
        ++(is_kept ? counts.num_kept : counts.num_made);
        ++counts.in_split[episode.split];
      } else {
        counts.rejected.push_back(
            {.name = episode.split + "/" + episode.name, .reason = failure});
      }
      if (progress) progress(++num_ended, std::ssize(episodes));
    };
    if (is_kept) {
      end("");
      continue;
    }
    pool.add({.work =
                  [&](const ChildChannel& /*parent*/) {
                    lock.reset();
                    write_action_csv(episode.folder);
                  },
              .take = {},
              .end = end});
  }
  pool.run();
  sort_by_name(counts.rejected);
  return counts;
}

}  // namespace lockstep::conversion
