#include "lockstep/datasets/voc/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/workers.h"
#include "lockstep/config/one_page_command.h"
#include "lockstep/data/label_map.h"
#include "lockstep/datasets/voc/voc_files.h"
#include "lockstep/formats/png.h"
#include "lockstep/options.h"

namespace lockstep::voc {
namespace {

namespace fs = std::filesystem;

// Maps of one kind.
struct MapKind {
  FilesOfNames labels = {};
  FilesOfNames maps = {};
  data::Image (*make)(const data::Image& labels, double lambda) = nullptr;
  double lambda = 1;
};

struct MapJob {
  const MapKind* kind = nullptr;
  std::string name = {};
};

std::vector<MapKind> kinds_of(const VocPrepareConfig& config,
                              const fs::path& folder) {
  const ScribbleDataConfig& data = config.data;
  std::vector<MapKind> kinds;
  if (!data.distancemap_s.empty()) {
    kinds.push_back({.labels = {.folder = folder / data.train_path,
                                .what = "scribbles (--train_path)",
                                .remedy = "Name their folder, or leave these "
                                          "maps out: --distancemap_s ''"},
                     .maps = {.folder = folder / data.distancemap_s},
                     .make = scribble_distance_map,
                     .lambda = config.lambda_s});
  }
  if (!data.distancemap_c.empty()) {
    kinds.push_back({.labels = {.folder = folder / data.pesudo_path,
                                .what = "pseudo labels (--pesudo_path)",
                                .remedy = "Name their folder, or leave these "
                                          "maps out: --distancemap_c ''"},
                     .maps = {.folder = folder / data.distancemap_c},
                     .make = outline_distance_map,
                     .lambda = config.lambda_c});
  }
  return kinds;
}

std::vector<MapJob> open_jobs(const std::vector<MapKind>& kinds,
                              const std::vector<std::string>& names,
                              const VocPrepareConfig& config) {
  std::vector<MapJob> jobs;
  for (const MapKind& kind : kinds) {
    check_files_exist(kind.labels, names);
    base::make_output_folder(kind.maps.folder);
    base::remove_leftovers(kind.maps.folder);
    for (const std::string& name : names) {
      std::error_code problem;
      if (!config.overwrite && fs::exists(kind.maps.path(name), problem)) {
        continue;
      }
      jobs.push_back({.kind = &kind, .name = name});
    }
  }
  return jobs;
}

void make_map(const MapJob& job) {
  const data::Image labels =
      data::read_label_map(job.kind->labels.path(job.name));
  const data::Image map = job.kind->make(labels, job.kind->lambda);
  base::write_file_atomically(job.kind->maps.path(job.name),
                              formats::encode_png(formats::PngPixels{
                                  .width = map.width,
                                  .height = map.height,
                                  .channels = 1,
                                  .pixels = map.pixels,
                                  .content = formats::PngContent::kDrawing}));
}

}  // namespace

void describe_prepare_flags(Options& options, VocPrepareConfig& config) {
  ScribbleDataConfig& data = config.data;
  options.add("dataset_path", data.dataset_path,
              "The folder of VOC2012, or the one above.",
              {.aliases = {"data_path"}});
  options.add("train_path", data.train_path,
              "Folder of scribbles, below that of VOC2012.");
  options.add("pesudo_path", data.pesudo_path, "Folder of pseudo labels.");
  options.add("distancemap_s", data.distancemap_s,
              "Where maps of distances from scribbles go; empty: none.");
  options.add("distancemap_c", data.distancemap_c,
              "Where maps of distances from outlines of pseudo labels go; "
              "empty: none.");
  options.add("lambda_s", config.lambda_s,
              "255 - sqrt(lambda) * distance, from scribbles.", {.minimum = 0});
  options.add("lambda_c", config.lambda_c,
              "sqrt(lambda) * distance, from outlines.", {.minimum = 0});
  options.add("workers", config.workers,
              "Threads; 0: one per processor, at most 16.",
              {.minimum = 0, .maximum = 1024});
  options.add("overwrite", config.overwrite, "Makes maps anew that are there.");
}

std::string prepare_scribble(const std::vector<std::string>& arguments,
                             const base::ShowProgress& progress) {
  VocPrepareConfig config;
  Options options;
  describe_prepare_flags(options, config);
  if (auto text = config::parse_one_page_command(
          options, arguments, "lockstep prepare scribble [flags]")) {
    return *text;
  }
  if (config.data.dataset_path == kBuiltinScribble) {
    return "Generated images need no preparation.\n";
  }
  const fs::path folder = find_voc_folder(config.data.dataset_path);
  const auto names = read_voc_names(voc_list(folder, "train"));
  const std::vector<MapKind> kinds = kinds_of(config, folder);
  const std::vector<MapJob> jobs = open_jobs(kinds, names, config);
  const int64_t begin = base::monotonic_ns();
  base::run_workers(
      std::ssize(jobs), config.workers,
      [&](int64_t i) { make_map(jobs[static_cast<size_t>(i)]); }, progress);
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  std::string text = fmt::format(
      "Made {} maps of distances in {} ({:.0f} maps/s, {} threads); {} were "
      "there already (--overwrite makes them anew).\n",
      jobs.size(), base::duration_text(seconds),
      static_cast<double>(jobs.size()) / std::max(seconds, 1e-9),
      base::num_workers(std::ssize(jobs), config.workers),
      kinds.size() * names.size() - jobs.size());
  for (const MapKind& kind : kinds) {
    text += fmt::format("  {}\n", kind.maps.folder.string());
  }
  return text;
}

}  // namespace lockstep::voc
