#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/conversion/episode_name.h"
#include "lockstep/datasets/conversion/hdf5_file.h"
#include "lockstep/datasets/conversion/libero_names.h"
#include "lockstep/datasets/conversion/source.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

struct Demo {
  fs::path file;
  std::string group;  // "data/demo_0"
};

// The images of one camera in one demonstration.
struct ImageSet {
  EpisodeCamera camera = EpisodeCamera::kWorkspace;
  std::string dataset = {};
  size_t num_frames = 0;
  int height = 0;
  int width = 0;

  size_t frame_bytes() const { return size_t(height) * size_t(width) * 3; }
};

bool is_hdf5(const fs::path& path) {
  return path.extension() == ".hdf5" || path.extension() == ".h5";
}

std::vector<fs::path> files_below(const fs::path& input) {
  std::error_code problem;
  if (fs::is_regular_file(input, problem)) return {input};
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(input, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (is_hdf5(entry->path())) files.push_back(entry->path());
  }
  if (problem) {
    throw ConfigError(fmt::format("--input '{}' cannot be read: {}",
                                  input.string(), problem.message()));
  }
  if (files.empty()) {
    throw ConfigError(fmt::format(
        "--input '{}' holds no .hdf5 file; it is a file of LIBERO, or a folder "
        "of such files",
        input.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "libero_10/lift_demo.hdf5", demo_3: "libero_10-lift-demo_3".
std::string name_of_demo(const fs::path& input, const fs::path& file,
                         const std::string& demo) {
  const fs::path below =
      file == input ? file.filename() : file.lexically_relative(input);
  std::string text = fs::path(below).replace_extension().string();
  constexpr std::string_view kEnd = "_demo";
  if (text.ends_with(kEnd)) text.resize(text.size() - kEnd.size());
  return episode_name(base::replace_all(text, "/", "-") + "-" + demo);
}

ImageSet checked_images(const Hdf5File& file, EpisodeCamera camera,
                        const std::string& dataset) {
  constexpr size_t kMostSide = 8192;
  const Hdf5Shape shape = file.shape(dataset);
  if (!shape.is_bytes || shape.sides.size() != 4 || shape.sides[3] != 3 ||
      std::max(shape.sides[1], shape.sides[2]) > kMostSide ||
      std::min(shape.sides[1], shape.sides[2]) < 1) {
    throw FormatError(fmt::format(
        "'{}' holds no images; those are numbers of 8 bits, frames x height "
        "x width x 3",
        dataset));
  }
  return {.camera = camera,
          .dataset = dataset,
          .num_frames = shape.sides[0],
          .height = static_cast<int>(shape.sides[1]),
          .width = static_cast<int>(shape.sides[2])};
}

std::vector<formats::Action> read_actions(const Hdf5File& file,
                                          const std::string& dataset) {
  const Hdf5Shape shape = file.shape(dataset);
  if (!shape.is_numbers || shape.sides.size() != 2 ||
      shape.sides[1] != formats::kActionSize) {
    throw FormatError(fmt::format(
        "'{}' holds no actions; those are frames x 7 numbers", dataset));
  }
  const std::vector<float> numbers = file.read_numbers(dataset);
  std::vector<formats::Action> actions(shape.sides[0]);
  for (size_t i = 0; i < actions.size(); ++i) {
    std::copy_n(numbers.data() + i * formats::kActionSize, formats::kActionSize,
                actions[i].data());
  }
  return actions;
}

void flip_rows(std::span<uint8_t> image, size_t row_bytes) {
  uint8_t* low = image.data();
  uint8_t* high = image.data() + image.size() - row_bytes;
  for (; low < high; low += row_bytes, high -= row_bytes) {
    std::swap_ranges(low, low + row_bytes, high);
  }
}

class LiberoSource final : public EpisodeSource {
 public:
  explicit LiberoSource(const SourceConfig& config) : config_(config) {
    if (config_.cameras.empty()) config_.cameras = {"agentview", "eye_in_hand"};
    list_files();
    base::number_equal_names(names_);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<Rejection>& rejected() const override { return rejected_; }

  std::string group(size_t episode) const override {
    return demos_.at(episode).file.string();
  }

  void read(size_t episode, EpisodeWriter& writer) override {
    const Demo& demo = demos_.at(episode);
    const Hdf5File file(demo.file);
    writer.set_sentence(
        libero_sentence(file.text_attribute("data", "problem_info"),
                        demo.file.stem().string()));
    writer.set_actions(read_actions(file, demo.group + "/actions"));
    const std::vector<std::string> observed = file.members(demo.group + "/obs");
    for (size_t i = 0; i < config_.cameras.size(); ++i) {
      const ImageSet set = checked_images(
          file, i == 0 ? EpisodeCamera::kWorkspace : EpisodeCamera::kWrist,
          demo.group + "/obs/" + find_camera(observed, config_.cameras[i]));
      copy_images(file, set, writer);
    }
  }

  std::string note() const override {
    if (config_.flip || !is_bottom_up_) return "";
    return "Images are as in the files, which is upside down "
           "(macros_image_convention opengl); --flip turns them.\n";
  }

 private:
  // What a child reports about a file.
  struct Listing {
    std::vector<std::string> lines = {};  // Image convention, then demos.
    std::string failure = {};
  };

  void list_files() {
    const std::vector<fs::path> files = files_below(config_.input);
    std::vector<Listing> listings(files.size());
    ChildPool pool(config_.num_children, config_.limits);
    for (size_t i = 0; i < files.size(); ++i) {
      pool.add({.work =
                    [&files, i](const ChildChannel& parent) {
                      list_demos(files[i], parent);
                    },
                .take =
                    [&listings, i](std::string_view line) {
                      listings[i].lines.emplace_back(line);
                    },
                .end =
                    [&listings, i](const ChildFailure& failure) {
                      listings[i].failure = failure;
                    }});
    }
    pool.run();
    for (size_t i = 0; i < files.size(); ++i) add_demos(files[i], listings[i]);
  }

  // In a child.
  static void list_demos(const fs::path& path, const ChildChannel& parent) {
    const Hdf5File file(path);
    std::vector<std::string> groups = file.members("data");
    std::erase_if(groups, [](const std::string& name) {
      return !name.starts_with("demo_");
    });
    if (groups.empty()) throw FormatError("there is no demo_* in 'data'");
    parent.send(
        file.text_attribute("data", "macros_image_convention").value_or(""));
    for (const std::string& group : groups) parent.send(group);
  }

  void add_demos(const fs::path& path, const Listing& listing) {
    if (!listing.failure.empty()) {
      rejected_.push_back({.name = path.string(), .reason = listing.failure});
      return;
    }
    is_bottom_up_ = is_bottom_up_ || listing.lines.at(0) == "opengl";
    for (size_t i = 1; i < listing.lines.size(); ++i) {
      const std::string& group = listing.lines[i];
      demos_.push_back({.file = path, .group = "data/" + group});
      names_.push_back(name_of_demo(config_.input, path, group));
    }
  }

  // Reads some frames at a time.
  void copy_images(const Hdf5File& file, const ImageSet& set,
                   EpisodeWriter& writer) const {
    constexpr size_t kBlockBytes = size_t{16} << 20U;
    const size_t size = set.frame_bytes();
    const size_t most = std::max<size_t>(1, kBlockBytes / size);
    for (size_t first = 0; first < set.num_frames; first += most) {
      const size_t count = std::min(most, set.num_frames - first);
      std::vector<uint8_t> block = file.read_bytes(set.dataset, first, count);
      for (size_t i = 0; i < count; ++i) {
        const std::span<uint8_t> pixels(block.data() + i * size, size);
        if (config_.flip) flip_rows(pixels, size_t(set.width) * 3);
        writer.add_image(set.camera, formats::encode_png(formats::PngPixels{
                                         .width = set.width,
                                         .height = set.height,
                                         .channels = 3,
                                         .pixels = pixels}));
      }
    }
  }

  SourceConfig config_;
  std::vector<Demo> demos_;
  std::vector<std::string> names_;
  std::vector<Rejection> rejected_;
  bool is_bottom_up_ = false;
};

}  // namespace

std::unique_ptr<EpisodeSource> open_libero(const SourceConfig& config) {
  return std::make_unique<LiberoSource>(config);
}

}  // namespace lockstep::conversion
