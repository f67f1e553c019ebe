// SIGKILL while checkpoints are written: the newest whole one is never older
// than the last one that was said to be saved, and nothing half-done stays.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <torch/torch.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>

#include "distributed/training.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/folder.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

void sleep_ns(int64_t ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&pause, nullptr);
}

std::vector<fs::path> half_done(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const std::string& name : files_below(folder)) {
    if (contains(name, ".partial.")) found.push_back(folder / name);
  }
  return found;
}

// The newest whole checkpoint; fails the test when a file that has its final
// name is not whole.
checkpoint::CheckpointFile newest_of_whole_files(
    const checkpoint::CheckpointQuery& query) {
  for (const checkpoint::CheckpointFile& file : checkpoint::list_checkpoints(
           query, [](const fs::path& path, const std::string& why) {
             ADD_FAILURE() << path << ": " << why;
           })) {
    EXPECT_NO_THROW(load_checkpoint(file.path)) << file.path;
  }
  const auto latest = checkpoint::load_latest(query);
  return latest ? latest->file : checkpoint::CheckpointFile{};
}

// Counters that outlive a killed process.
struct Shared {
  std::atomic<int64_t> num_started = 0;
  std::atomic<int64_t> last_saved = 0;
};

class SharedMemory {
 public:
  SharedMemory()
      : shared_(new(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  ~SharedMemory() { munmap(shared_, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* operator->() const { return shared_; }
  Shared& operator*() const { return *shared_; }

 private:
  Shared* shared_;
};

// What Checkpoints does in a training, step by step until it is killed.
[[noreturn]] void save_for_ever(const checkpoint::CheckpointQuery& query,
                                int64_t step, Shared& shared) {
  BackgroundSaver saver({.on_saved = [&](const fs::path& path) {
    const std::string name = path.stem();
    shared.last_saved = std::stoll(name.substr(name.find('-') + 1));
    checkpoint::remove_old(query, {.keep_last = 2});
  }});
  while (true) {
    ++step;
    Tree tree;
    tree["step"] = step;
    for (int i = 0; i < 4; ++i) {
      tree["model"][std::to_string(i)] = torch::full({250'000}, double(step));
    }
    saver.save(query.folder / ("step-" + std::to_string(step) + ".pt"), tree);
    ++shared.num_started;
  }
}

TEST(Kill, At200MomentsOfSavingLosesNothingThatWasSaid) {
  at::set_num_threads(1);  // The children cannot use threads of this process.
  const TempDir temp;
  const checkpoint::CheckpointQuery query{.folder = temp.path(),
                                          .patterns = {"step-*.pt"}};
  const SharedMemory shared;
  std::mt19937 random(13);
  int num_hits = 0;
  int64_t step = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    shared->num_started = 0;
    const pid_t child = fork();
    if (child == 0) save_for_ever(query, step, *shared);
    const auto wanted = static_cast<int64_t>(1 + random() % 3);
    EXPECT_TRUE(wait_for([&] { return shared->num_started >= wanted; }, 120));
    sleep_ns(static_cast<int64_t>(random() % 15'000'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);

    EXPECT_LE(half_done(temp.path()).size(), 1U);
    const auto removed = base::remove_leftovers(temp.path());
    num_hits += static_cast<int>(removed.size());
    EXPECT_TRUE(half_done(temp.path()).empty());
    const checkpoint::CheckpointFile newest = newest_of_whole_files(query);
    ASSERT_GE(newest.step, shared->last_saved);
    ASSERT_GE(newest.step, step);
    const Tree tree = load_checkpoint(newest.path);
    for (int i = 0; i < 4; ++i) {
      const at::Tensor weight =
          tree.at("model").at(std::to_string(i)).as_tensor();
      ASSERT_TRUE(weight.eq(double(newest.step)).all().item<bool>());
    }
    step = newest.step;
  }
  checkpoint::remove_old(query, {.keep_last = 2});
  EXPECT_EQ(files_below(temp.path()).size(), 2U);
  EXPECT_GT(num_hits, 50) << "too few kills hit the writing of a file";
}

class KillTraining : public ::testing::Test {
 protected:
  Training training(const std::string& name, int world) const {
    return {.recipe = "tiny",
            .world = world,
            .folder = temp_.path() / name,
            .flags = {"--n_steps=60", "--save_every=1", "--log_every=1",
                      "--train_samples=64", "--val_samples=0",
                      "--global_batch_size=4", "--width=64", "--workers=1"}};
  }

  checkpoint::CheckpointQuery query() const {
    return {.folder = temp_.path() / "killed",
            .patterns = {"checkpoint_step_*.pt", "best_model.pt"},
            .step_key = "global_step"};
  }

  // By names alone: the files come and go meanwhile.
  int64_t newest_step() const {
    const std::string prefix = "checkpoint_step_";
    int64_t newest = 0;
    std::error_code no_folder_yet;
    for (const auto& entry :
         fs::directory_iterator(query().folder, no_folder_yet)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix) && name.ends_with(".pt")) {
        newest =
            std::max<int64_t>(newest, std::stoll(name.substr(prefix.size())));
      }
    }
    return newest;
  }

  // Goes on with the run and kills all its processes some steps later.
  void kill_once(int world, std::mt19937& random) {
    Training killed = training("killed", world);
    killed.flags.push_back("--resume=latest");
    const int64_t before = newest_step();
    Process process(command_of(killed), process_options(killed));
    const auto steps = static_cast<int64_t>(1 + random() % 4);
    ASSERT_TRUE(wait_for([&] { return newest_step() >= before + steps; }, 120))
        << process.err();
    sleep_ns(static_cast<int64_t>(random() % 10'000'000));
    const int64_t seen = newest_step();
    for (const pid_t pid : find_marked(process.marker())) kill(pid, SIGKILL);
    EXPECT_EQ(process.wait().exit_code, -SIGKILL);
    EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
    if (before > 0) {
      expect_in(process.out(), "resuming from " + resumed_from_.string());
    }
    EXPECT_LE(half_done(query().folder).size(), 1U);
    const checkpoint::CheckpointFile newest = newest_of_whole_files(query());
    EXPECT_GE(newest.step, seen);
    // The line of a step follows its save, which runs beside the next step.
    const auto told = metric(query().folder, "train/loss").size();
    EXPECT_LE(static_cast<int64_t>(told), newest.step + 2);
    resumed_from_ = newest.path;
  }

  TempDir temp_;
  fs::path resumed_from_;
};

TEST_F(KillTraining, AgainAndAgainEndsAsIfItHadNotBeenKilled) {
  for (const int world : {1, 2}) {
    SCOPED_TRACE("world " + std::to_string(world));
    fs::remove_all(temp_.path() / "whole");
    fs::remove_all(temp_.path() / "killed");
    resumed_from_.clear();
    run_well(training("whole", world));
    std::mt19937 random(17);
    for (int round = 0; round < (world == 1 ? 6 : 3); ++round) {
      kill_once(world, random);
    }
    Training last = training("killed", world);
    last.flags.push_back("--resume=latest");
    run_well(last);
    EXPECT_TRUE(half_done(last.folder).empty());
    EXPECT_EQ(metric_lines(last.folder), metric_lines(temp_.path() / "whole"));
    expect_equal(learned(last_checkpoint(last.folder)),
                 learned(last_checkpoint(temp_.path() / "whole")));
  }
}

}  // namespace
}  // namespace lockstep::testing
