#include "lockstep/doctor/recipe_findings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"

namespace lockstep::doctor {
namespace {

constexpr double kPoorEfficiency = 0.6;
constexpr double kLargePart = 0.3;  // Fraction of a step's time.

std::string speed_text(const RecipeMeasurement& measured, int num_processes) {
  return fmt::format("{} process{} {:.3g} samples/s ({:.3g} ms per step)",
                     num_processes, num_processes == 1 ? "" : "es",
                     measured.samples_per_second, measured.step_ms);
}

// Other processes take turns with the measured ones.
void note_load(const SpeedPair& pair, Finding& finding) {
  if (pair.load < pair.cpus / 2) return;
  finding.level = Level::kWarning;
  finding.text +=
      fmt::format(", but the machine is busy (load {:.1f} on {:g} CPUs)",
                  pair.load, pair.cpus);
  finding.mend = "run this command again when the machine is idle";
}

void judge_gain(const SpeedPair& pair, double gain, Finding& finding) {
  if (gain >= kPoorEfficiency * pair.num_processes) return;
  finding.level = Level::kWarning;
  if (pair.together.data_part > kLargePart) {
    finding.text += ", ranks wait for data";
    finding.mend = "more --workers, or prepared data";
  } else if (pair.together.exchange_part > kLargePart) {
    finding.text += ", ranks wait for gradients of others";
    finding.mend = "a larger --batch_size or --gradient_accumulation_steps 4";
  } else {
    finding.mend = "--nproc 1, unless other processes load this machine now";
  }
}

}  // namespace

std::optional<RecipeMeasurement> parse_measurement(std::string_view text) {
  using Json = nlohmann::json;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  try {
    const Json parts = json.value("parts", Json::object());
    return RecipeMeasurement{
        .num_samples = json.value("samples", int64_t{0}),
        .first_ms = json.value("first_ms", 0.0),
        .last_ms = json.value("last_ms", 0.0),
        .batch = json.value("batch", ""),
        .lr = json.value("lr", ""),
        .batch_size = json.value("batch_size", int64_t{0}),
        .workers = json.value("workers", int64_t{0}),
        .device = json.value("device", "?"),
        .peak_bytes = json.value("peak_bytes", int64_t{0}),
        .total_bytes = json.value("total_bytes", int64_t{0}),
        .peak_host_bytes = json.value("peak_host_bytes", int64_t{0}),
        .checkpoint_bytes = json.value("checkpoint_bytes", int64_t{0}),
        .num_checkpoints = json.value("keep_last", int64_t{1}),
        .save_dir = json.value("save_dir", ""),
        .step_ms = json.value("step_ms", 0.0),
        .samples_per_second = json.value("samples_per_second", 0.0),
        .data_part = parts.value("data", 0.0),
        .exchange_part = parts.value("exchange", 0.0)};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Finding data_finding(const RecipeMeasurement& measured) {
  return {.check = "data",
          .text = fmt::format(
              "{} training samples; the first and the last one decoded in "
              "{:.1f} and {:.1f} ms",
              measured.num_samples, measured.first_ms, measured.last_ms),
          .kind = Class::kFiles};
}

Finding batch_finding(const RecipeMeasurement& measured) {
  return {.check = "batch", .text = measured.batch + "; " + measured.lr};
}

Finding batch_memory_finding(const RecipeMeasurement& measured) {
  Finding finding{.check = "batch memory", .kind = Class::kDevice};
  finding.text =
      fmt::format("a step with a batch of {} per process takes {} of {} on {}",
                  measured.batch_size, base::bytes_text(measured.peak_bytes),
                  base::bytes_text(measured.total_bytes), measured.device);
  if (measured.total_bytes > 0 &&
      measured.peak_bytes > measured.total_bytes / 10 * 9) {
    finding.level = Level::kWarning;
    finding.mend =
        "a smaller --batch_size with more "
        "--gradient_accumulation_steps";
  }
  return finding;
}

Finding speed_finding(const SpeedPair& pair) {
  Finding finding{.check = "speed", .text = "ten steps: "};
  if (pair.num_processes == 1) {
    finding.text += speed_text(pair.together, 1);
  } else {
    const double before = pair.alone.samples_per_second;
    const double gain =
        before > 0 ? pair.together.samples_per_second / before : 0;
    finding.text += fmt::format(
        "{}, {}; predicted speed-up {:.2f}", speed_text(pair.alone, 1),
        speed_text(pair.together, pair.num_processes), gain);
    judge_gain(pair, gain, finding);
  }
  note_load(pair, finding);
  return finding;
}

}  // namespace lockstep::doctor
