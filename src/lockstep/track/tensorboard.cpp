#include "lockstep/track/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"
#include "lockstep/track/metrics_file.h"
#include "lockstep/track/tfevents.pb.h"
#include "lockstep/track/tfrecord.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

// TensorBoard reads the files of a folder in the order of their names: a new
// one must come last, whatever the clock shows.
int64_t time_for_name(const fs::path& folder) {
  int64_t time = base::unix_seconds();
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto digits = base::split(name.substr(kPrefix.size()), '.').front();
    time = std::max(time, base::parse_integer(digits).value_or(0) + 1);
  }
  return time;
}

RecordFile open_new(const fs::path& folder) {
  try {
    fs::create_directories(folder);
    const std::string name =
        fmt::format("{}{:010}.{}.{}.0", kPrefix, time_for_name(folder),
                    base::host_name(), getpid());
    return RecordFile(folder / name, RecordFile::Open::kNew);
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("cannot use the folder {} for TensorBoard: {}",
                              folder.string(), error.code().message()));
  }
}

void add_scalar(tfevents::Summary& summary, const std::string& name,
                double number) {
  auto& value = *summary.add_value();
  value.set_tag(base::as_utf8(name));
  value.set_simple_value(static_cast<float>(number));
}

void add_image(tfevents::Summary& summary, const ImageRecord& item) {
  const formats::PngHeader header = formats::read_png_header(item.png);
  auto& value = *summary.add_value();
  value.set_tag(base::as_utf8(item.title));
  auto& image = *value.mutable_image();
  image.set_width(header.width);
  image.set_height(header.height);
  image.set_colorspace(header.channels);
  image.set_encoded_image_string(item.png);
}

void add_text(tfevents::Summary& summary, const TextNote& note) {
  auto& value = *summary.add_value();
  value.set_tag(base::as_utf8(note.title));
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  auto& tensor = *value.mutable_tensor();
  tensor.set_dtype(tfevents::Tensor::STRING);
  tensor.mutable_tensor_shape();  // No dimensions: one text, not a table.
  tensor.add_string_val(base::as_utf8(note.text));
}

std::string framed(const tfevents::Event& event) {
  return tfrecord(event.SerializeAsString());
}

}  // namespace

TensorBoardTracker::TensorBoardTracker(const TensorBoardConfig& config)
    : file_(open_new(config.folder)) {
  tfevents::Event version;
  version.set_wall_time(static_cast<double>(base::unix_seconds()));
  version.set_file_version("brain.Event:2");
  file_.append(framed(version));
  start(config);
}

// Readers forget the step of this event and later ones, unless it is the first
// of its kind that they see: so a new run has one, too.
void TensorBoardTracker::start(const TensorBoardConfig& config) {
  const KeptRecords kept = config.kept.value_or(KeptRecords{.last_step = -1});
  const bool is_partly_redone = !kept.redone.empty();
  tfevents::Event event;
  event.set_wall_time(static_cast<double>(base::unix_seconds()));
  event.set_step(is_partly_redone ? kept.last_step : kept.last_step + 1);
  event.mutable_session_log()->set_status(tfevents::SessionLog::START);
  file_.append(framed(event));
  if (!is_partly_redone) return;
  read_metrics(config.metrics, [&](Record again) {
    if (again.step != kept.last_step) return;
    again.unix_time = event.wall_time();
    record(again);
  });
}

void TensorBoardTracker::record(const Record& record) {
  tfevents::Event event;
  event.set_wall_time(record.unix_time);
  event.set_step(record.step);
  auto& summary = *event.mutable_summary();
  for (const auto& [name, value] : record.metrics) {
    add_scalar(summary, name, value);
  }
  for (const ImageRecord& item : record.images) add_image(summary, item);
  for (const TextNote& note : record.texts) add_text(summary, note);
  if (summary.value_size() > 0) file_.append(framed(event));
}

}  // namespace lockstep::track
