#include "lockstep/run/checkpoints.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/folder.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/error.h"
#include "lockstep/run/checkpoint_sections.h"
#include "lockstep/run/replica_tree.h"
#include "lockstep/run/run_folder.h"
#include "lockstep/run/state_tree.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

checkpoint::CheckpointQuery query_of(const CheckpointsConfig& config) {
  checkpoint::CheckpointQuery query{
      .folder = config.folder,
      .patterns = {engine::file_pattern(config.names.checkpoint)},
      .step_key = "lockstep.state.step"};
  if (!config.names.epoch_checkpoint.empty()) {
    query.patterns.push_back(
        engine::file_pattern(config.names.epoch_checkpoint));
  }
  return query;
}

checkpoint::CheckpointQuery query_of_all(const CheckpointsConfig& config) {
  checkpoint::CheckpointQuery query = query_of(config);
  query.patterns.push_back(config.names.best);
  if (!config.names.last.empty()) query.patterns.push_back(config.names.last);
  return query;
}

std::optional<checkpoint::LoadedCheckpoint> find_latest(
    const CheckpointsConfig& config, track::Console& console) {
  const checkpoint::CheckpointQuery query = query_of_all(config);
  int num_damaged = 0;
  auto latest = checkpoint::load_latest(
      query, [&](const fs::path& path, const std::string& reason) {
        ++num_damaged;
        console.warn(fmt::format("{} is left out: {}", path.string(), reason));
      });
  if (!latest && num_damaged > 0) {
    throw FormatError(
        fmt::format("--resume latest: every checkpoint in {} is damaged; "
                    "--overwrite starts over, or resume from a file elsewhere",
                    config.folder.string()));
  }
  return latest;
}

// Throws ConfigError unless --resume names a file.
void require_resumable(const std::string& resume, const fs::path& folder) {
  if (fs::is_regular_file(resume)) return;
  if (fs::is_directory(resume)) {
    throw ConfigError(fmt::format(
        "--resume {} is a folder: use --resume latest --save_dir {}", resume,
        resume));
  }
  throw ConfigError(fmt::format(
      "--resume {}: there is no such file; --resume latest takes the newest "
      "checkpoint of --save_dir {}",
      resume, folder.string()));
}

// Atomically gives a file a second name by a hard link, so nothing is written
// twice. Returns the error, or no value.
std::optional<std::string> link_file(const fs::path& file,
                                     const fs::path& name) {
  const fs::path temporary = name.string() + ".partial.linked";
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_hard_link(file, temporary, error);
  if (error)
    fs::copy_file(file, temporary, error);  // Not every file system has links.
  if (!error) fs::rename(temporary, name, error);
  if (!error) return std::nullopt;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return error.message();
}

// The file name pattern for a checkpoint at `state`.
const std::string& name_of(const engine::TrainState& state,
                           const FileNames& names) {
  const bool is_epoch = state.position.sample == 0 && state.position.epoch > 0;
  return is_epoch && !names.epoch_checkpoint.empty() ? names.epoch_checkpoint
                                                     : names.checkpoint;
}

void warn_of_other_bits(const TreeView& own, const CheckpointsConfig& config,
                        const World& world, track::Console& console) {
  const int64_t ranks = own.at("world_size").as_int();
  const int64_t threads = own.at("threads").as_int();
  const int64_t batch = own.at("global_batch").as_int();
  if (own.at("state").at("sample").as_int() > 0 &&
      (own.at("seed").as_int() != static_cast<int64_t>(config.seed) ||
       own.at("num_samples").as_int() != config.num_samples)) {
    console.warn(fmt::format(
        "saved in the middle of an epoch of {} samples in the order of seed "
        "{}, "
        "resumed with {} and {}: in the rest of this epoch samples are missed "
        "or seen twice",
        own.at("num_samples").as_int(), own.at("seed").as_int(),
        config.num_samples, config.seed));
  }
  if (ranks == world.size() && batch == config.global_batch &&
      threads == at::get_num_threads()) {
    return;
  }
  console.warn(fmt::format(
      "saved with {} processes, effective batch {} and {} threads, resumed "
      "with {}, {} and {}: every remaining sample of the epoch is still seen "
      "once, but the bits will differ",
      ranks, batch, threads, world.size(), config.global_batch,
      at::get_num_threads()));
}

// Another number of ranks: rank 0 has the sums of all. The last two values are
// counters that are equal on all ranks.
at::Tensor running_sums_of(const TreeView& of_ranks, const World& world) {
  const auto num_saved = static_cast<int64_t>(of_ranks.as_list().size());
  if (num_saved == world.size()) return of_ranks.at(world.rank()).as_tensor();
  at::Tensor own = of_ranks.at(0).as_tensor().clone();
  at::Tensor sums = own.slice(0, 0, own.size(0) - 2);
  if (!world.is_main()) {
    sums.zero_();
    return own;
  }
  for (int64_t rank = 1; rank < num_saved; ++rank) {
    sums.add_(of_ranks.at(rank).as_tensor().slice(0, 0, sums.size(0)));
  }
  return own;
}

}  // namespace

std::optional<Tree> find_checkpoint(const std::string& resume,
                                    const CheckpointsConfig& config,
                                    const World& world,
                                    track::Console& console) {
  // Rank 0 verifies the newest checkpoint by loading it.
  std::optional<checkpoint::LoadedCheckpoint> latest;
  const std::string path = world.run_on_rank0_and_broadcast([&] {
    if (resume == "latest") {
      latest = find_latest(config, console);
      return latest ? latest->file.path.string() : std::string();
    }
    require_resumable(resume, config.folder);
    return resume;
  });
  if (path.empty()) {
    console.info(fmt::format("{} holds no checkpoint: starting from scratch",
                             config.folder.string()));
    return std::nullopt;
  }
  Tree tree = latest ? std::move(latest->tree) : load_checkpoint(path);
  if (tree.find("lockstep") == nullptr) {
    throw ConfigError(
        fmt::format("--resume {}: the file holds weights but no training state "
                    "of Lockstep; use --init_from to start a new run with them",
                    path));
  }
  const std::string& recipe = tree.at("lockstep").at("recipe").as_string();
  if (recipe != config.recipe) {
    throw ConfigError(
        fmt::format("--resume {}: a checkpoint of the recipe {}, not of {}",
                    path, recipe, config.recipe));
  }
  console.info("resuming from " + path);
  return tree;
}

std::vector<fs::path> newer_checkpoints(const CheckpointsConfig& config,
                                        int64_t step) {
  std::vector<fs::path> newer;
  for (const checkpoint::CheckpointFile& file :
       checkpoint::list_checkpoints(query_of_all(config))) {
    if (file.step > step) newer.push_back(file.path);
  }
  return newer;
}

bool keep_best(const CheckpointsConfig& config, const std::string& resume,
               int64_t step) {
  const fs::path best = config.folder / config.names.best;
  std::vector<checkpoint::CheckpointFile> files =
      checkpoint::list_checkpoints(query_of_all(config));
  if (resume != "latest") {
    const fs::path path = resume;
    checkpoint::CheckpointQuery query = query_of(config);
    query.folder = path.has_parent_path() ? path.parent_path() : ".";
    query.patterns = {path.filename().string()};
    for (checkpoint::CheckpointFile& file : checkpoint::list_checkpoints(query))
      files.push_back(file);
  }
  std::erase_if(files, [&](const checkpoint::CheckpointFile& file) {
    return file.step != step;
  });
  if (std::ranges::any_of(files, [&](const checkpoint::CheckpointFile& file) {
        return file.path == best;
      })) {
    return true;
  }
  return !files.empty() && !link_file(files.front().path, best);
}

int64_t load_weights(const fs::path& path, std::optional<int64_t> average,
                     const WeightsTarget& target) {
  require_file("--checkpoint", path);
  const Tree tree = load_checkpoint(path);
  check_frozen(tree, target.frozen);
  load_module_state(target.model,
                    find_weights(tree, target.layout, path.string()));
  if (average) {
    load_module_state(
        target.model,
        find_average(tree, target.layout, *average, target.averaged),
        Strictness::kWhatFits);
  }
  const auto own = TreeView(tree).find("lockstep");
  return own ? own->at("state").at("step").as_int() : 0;
}

std::optional<BucketLayout> layout_of(const Tree& checkpoint,
                                      const World& world) {
  const TreeView own = checkpoint.at("lockstep");
  if (own.at("world_size").as_int() != world.size()) return std::nullopt;
  return read_bucket_layout(own.at("bucket_layout"));
}

engine::TrainState restore(const Tree& checkpoint, engine::Learner& learner,
                           const CheckpointsConfig& config, const World& world,
                           track::Console& console) {
  const TreeView own = checkpoint.at("lockstep");
  restore_replicas(checkpoint, learner, config);
  if (own.at("world_size").as_int() == world.size()) {
    load_generators(world, own.at("generators"));
  }
  if (const auto sums = own.find("running_sums")) {
    learner.set_running_sums(running_sums_of(*sums, world));
  }
  const auto algorithms = own.find("product_algorithms");
  if (algorithms && learner.product_choice() != nullptr) {
    learner.product_choice()->take(algorithms->as_string());
  }
  if (world.is_main()) warn_of_other_bits(own, config, world, console);
  return read_train_state(own.at("state"));
}

Checkpoints::Checkpoints(CheckpointsConfig config, engine::Learner& learner,
                         const World& world, track::Console& console)
    : config_(std::move(config)),
      learner_(learner),
      world_(world),
      console_(console),
      saver_({.before_save = config_.wait_for_records,
              .on_saved = [this](const fs::path& path) { note_saved(path); },
              .on_error =
                  [this](const fs::path& path, const std::string& error) {
                    note_failed(path, error);
                  }}) {}

Tree Checkpoints::make_tree(const engine::TrainState& state) {
  Tree tree = replica_tree(learner_, state, config_);
  Tree& own = tree["lockstep"];
  own["world_size"] = world_.size();
  own["bucket_layout"] = bucket_layout_tree(learner_.bucket_layout());
  if (const auto* products = learner_.product_choice()) {
    own["product_algorithms"] = products->text();
  }
  own["generators"] = generators_tree(world_);
  own["running_sums"] = gathered_tree(learner_.running_sums(), world_);
  return tree;
}

void Checkpoints::save(const engine::TrainState& state,
                       const SaveRequest& request) {
  const Tree tree = make_tree(state);
  if (!config_.save_required) {
    if (world_.is_main()) write(state, request, tree);
    return;
  }
  world_.run_on_rank0_and_broadcast([&] {
    write(state, request, tree);
    failures_.require_saves(config_.folder);
  });
}

void Checkpoints::write(const engine::TrainState& state,
                        const SaveRequest& request, const Tree& tree) {
  if (config_.fence) config_.fence->check();
  config_.status.start_save();
  const std::string name =
      request.as_checkpoint
          ? engine::file_name(name_of(state, config_.names), state.step,
                              state.position.epoch)
          : config_.names.best;
  saver_.wait();  // The writing thread still reads the previous request.
  request_ = request;
  step_ = state.step;
  saver_.save(config_.folder / name, tree);
  // The last file must be complete, and after a failed save the result of the
  // next one decides whether to continue. Otherwise training continues during
  // the write.
  if (request.is_last || (request.as_best && config_.waits_for_best) ||
      (config_.save_required && failures_.in_a_row() > 0)) {
    saver_.wait();
  }
}

// The following functions run on the writing thread; training does not wait.
void Checkpoints::note_saved(const fs::path& path) {
  config_.status.note_saved(step_);
  const auto link = [&](const std::string& name) {
    if (name.empty() || path.filename() == name) return true;
    const auto problem = link_file(path, config_.folder / name);
    if (problem) {
      console_.error(fmt::format("{} was not written: {}",
                                 (config_.folder / name).string(), *problem));
    }
    return !problem;
  };
  failures_.note_saved(step_);
  if (request_.as_checkpoint) {
    has_lost_checkpoint_ = false;
    link(config_.names.last);
  }
  if (request_.as_best) has_lost_best_ = !link(config_.names.best);
  if (request_.as_checkpoint) remove_old_files(path);
}

void Checkpoints::note_failed(const fs::path& path, const std::string& error) {
  if (request_.as_checkpoint) has_lost_checkpoint_ = true;
  if (request_.as_best) has_lost_best_ = true;
  console_.error(failures_.note_failed(
      {.path = path, .error = error, .has_older = has_any()}));
}

bool Checkpoints::has_any() const {
  try {
    return has_checkpoints(config_.folder, config_.names);
  } catch (const fs::filesystem_error&) {
    return false;  // A folder that cannot be read cannot be resumed either.
  }
}

void Checkpoints::remove_old_files(const fs::path& saved) {
  if (config_.keep_last == 0) return;
  try {
    checkpoint::remove_old(query_of(config_),
                           {.keep_last = static_cast<size_t>(config_.keep_last),
                            .keep = {config_.names.best},
                            .known_sound = saved});
  } catch (const Error& error) {
    console_.warn(error.what());
  }
}

bool Checkpoints::has_lost_best() {
  return world_.run_on_rank0_and_broadcast([&] {
    // The result of a write in progress is not known yet.
    if (request_.as_best) saver_.wait();
    return has_lost_best_ ? 1 : 0;
  }) != 0;
}

std::string Checkpoints::finish() {
  if (!world_.is_main()) return "";
  saver_.wait();
  if (has_lost_checkpoint_) return "last checkpoint";
  return has_lost_best_ ? "best model" : "";
}

}  // namespace lockstep::run
