#include "lockstep/track/wandb_records.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"
#include "lockstep/track/secrets.h"
#include "lockstep/track/system_metrics.h"
#include "lockstep/track/wandb.pb.h"

namespace lockstep::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProducer = "lockstep";
// The consumer that wandb's own writer names.
constexpr const char* kMinConsumer = "0.70.0";
constexpr double kNanosPerSecond = 1e9;

std::string readable(std::string_view text) {
  if (base::is_utf8(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const size_t size = base::code_point_size(text);
    result += size == 0 ? "\xef\xbf\xbd" : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

wandb::Record numbered(int64_t num) {
  wandb::Record record;
  record.set_num(num);
  return record;
}

void set_time(wandb::Timestamp& timestamp, double unix_time) {
  const double seconds = std::floor(unix_time);
  timestamp.set_seconds(static_cast<int64_t>(seconds));
  timestamp.set_nanos(
      static_cast<int32_t>((unix_time - seconds) * kNanosPerSecond));
}

void set_item(wandb::Item& message, const WandbItem& item) {
  for (const auto& part : item.key) message.add_nested_key(readable(part));
  message.set_value_json(item.json);
}

void set_config(wandb::Items& message, std::string_view config_json) {
  const Json config = Json::parse(json_without_secrets(config_json));
  LOCKSTEP_CHECK(config.is_object(), "config_json must be an object");
  for (const auto& [name, value] : config.items()) {
    auto& item = *message.add_update();
    item.set_key(name);
    item.set_value_json(value.dump());
  }
}

std::string system_text() {
  utsname name{};
  if (uname(&name) != 0) return "Linux";
  return fmt::format("{}-{}-{}", name.sysname, name.release, name.machine);
}

std::string path_or_empty(const std::filesystem::path& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).string();
}

}  // namespace

std::string wandb_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

std::string wandb_json(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string header_record(int64_t num) {
  auto record = numbered(num);
  auto& version = *record.mutable_header()->mutable_version();
  version.set_producer(kProducer);
  version.set_min_consumer(kMinConsumer);
  return record.SerializeAsString();
}

std::string run_record(int64_t num, const std::string& run_id,
                       const WandbConfig& config, double start_time) {
  auto record = numbered(num);
  auto& run = *record.mutable_run();
  run.set_run_id(readable(run_id));
  run.set_project(readable(config.project.value_or("lockstep")));
  run.set_entity(readable(config.entity.value_or("")));
  run.set_display_name(readable(config.name.value_or("")));
  run.set_run_group(readable(config.group.value_or("")));
  run.set_job_type(readable(config.job_type.value_or("")));
  run.set_notes(readable(config.notes.value_or("")));
  if (config.tags) {
    for (const auto& tag : *config.tags) run.add_tags(readable(tag));
  }
  run.set_host(readable(base::host_name()));
  set_time(*run.mutable_start_time(), start_time);
  set_config(*run.mutable_config(), config.config_json);
  return record.SerializeAsString();
}

std::string environment_record(int64_t num, const std::string& run_id,
                               const WandbConfig& config,
                               std::span<const GpuModel> gpus) {
  auto record = numbered(num);
  auto& environment = *record.mutable_environment();
  environment.set_os(readable(system_text()));
  set_time(*environment.mutable_started_at(), config.start_time);
  for (const auto& argument : arguments_without_secrets(config.arguments)) {
    environment.add_args(readable(argument));
  }
  environment.set_program(readable(config.program));
  environment.set_root(readable(path_or_empty("/proc/self/cwd")));
  environment.set_host(readable(base::host_name()));
  environment.set_executable(readable(path_or_empty("/proc/self/exe")));
  const unsigned num_processors = std::thread::hardware_concurrency();
  environment.set_cpu_count(num_processors);
  environment.set_cpu_count_logical(num_processors);
  const auto meminfo = base::try_read_file("/proc/meminfo");
  if (const auto memory = meminfo ? parse_meminfo(*meminfo) : std::nullopt) {
    environment.mutable_memory()->set_total(
        static_cast<uint64_t>(memory->total_bytes));
  }
  if (!gpus.empty()) {
    environment.set_gpu_type(readable(gpus[0].name));
    environment.set_gpu_count(static_cast<uint32_t>(gpus.size()));
  }
  for (const auto& model : gpus) {
    auto& gpu = *environment.add_gpu_nvidia();
    gpu.set_name(readable(model.name));
    gpu.set_memory_total(model.memory_bytes);
  }
  environment.set_writer_id(readable(run_id));
  return record.SerializeAsString();
}

std::string history_record(int64_t num, int64_t step,
                           std::span<const WandbItem> items) {
  auto record = numbered(num);
  auto& history = *record.mutable_history();
  history.mutable_step()->set_num(step);
  for (const auto& item : items) set_item(*history.add_item(), item);
  return record.SerializeAsString();
}

std::string summary_record(int64_t num, std::span<const WandbItem> items) {
  auto record = numbered(num);
  auto& summary = *record.mutable_summary();
  for (const auto& item : items) set_item(*summary.add_update(), item);
  return record.SerializeAsString();
}

std::string media_record(int64_t num, std::span<const std::string> paths) {
  auto record = numbered(num);
  for (const auto& path : paths) {
    auto& file = *record.mutable_files()->add_files();
    file.set_path(readable(path));
    file.set_type(wandb::Files::MEDIA);
  }
  return record.SerializeAsString();
}

std::string stats_record(
    int64_t num, double unix_time,
    std::span<const std::pair<std::string, double>> metrics) {
  auto record = numbered(num);
  auto& stats = *record.mutable_stats();
  set_time(*stats.mutable_timestamp(), unix_time);
  for (const auto& [name, value] : metrics) {
    auto& item = *stats.add_item();
    item.set_key(readable(name));
    item.set_value_json(wandb_json(value));
  }
  return record.SerializeAsString();
}

std::string console_record(int64_t num, const ConsoleText& text) {
  auto record = numbered(num);
  auto& output = *record.mutable_output();
  output.set_stream(text.is_error ? wandb::Output::STDERR
                                  : wandb::Output::STDOUT);
  set_time(*output.mutable_timestamp(), text.unix_time);
  output.set_line(readable(text.text));
  return record.SerializeAsString();
}

std::string exit_record(int64_t num, int exit_code, double runtime_seconds) {
  auto record = numbered(num);
  record.mutable_exit()->set_exit_code(exit_code);
  record.mutable_exit()->set_runtime(static_cast<int32_t>(runtime_seconds));
  return record.SerializeAsString();
}

std::string final_record(int64_t num) {
  auto record = numbered(num);
  record.mutable_final();
  return record.SerializeAsString();
}

std::string footer_record(int64_t num) {
  auto record = numbered(num);
  record.mutable_footer();
  return record.SerializeAsString();
}

}  // namespace lockstep::track
