#include "lockstep/track/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lockstep::track {
namespace {

constexpr int kFewestCells = 10;
constexpr int kMostCells = 40;
constexpr int kEighths = 8;
constexpr std::array kPartialBlocks = {"",       "\u258f", "\u258e", "\u258d",
                                       "\u258c", "\u258b", "\u258a", "\u2589"};

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

int width_of(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), begins_character));
}

// Never leaves half of a character behind.
std::string cut(std::string text, int columns) {
  int width = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!begins_character(text[at])) continue;
    if (width == columns) {
      text.resize(at);
      break;
    }
    ++width;
  }
  return text;
}

// Up to four significant decimals.
std::string value_text(double value) {
  const double size = std::abs(value);
  const bool is_plain = size == 0 || (size >= 1e-3 && size < 1e5);
  return is_plain ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

std::string rate_text(double rate) {
  return rate < 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
}

std::string count_text(int64_t done, int64_t total) {
  return total > 0 ? fmt::format("{}/{}", done, total)
                   : fmt::format("{}", done);
}

// 0 while nothing is known.
double steps_per_second(const ProgressState& state) {
  const auto steps = static_cast<double>(state.step - state.first_step);
  return state.seconds_elapsed > 0 && steps > 0 ? steps / state.seconds_elapsed
                                                : 0;
}

double seconds_left(const ProgressState& state) {
  const double rate = steps_per_second(state);
  if (rate == 0) return std::numeric_limits<double>::infinity();
  const int64_t steps = std::max<int64_t>(0, state.total_steps - state.step);
  return static_cast<double>(steps) / rate;
}

double fraction(const ProgressState& state) {
  return std::clamp(
      static_cast<double>(state.step) / static_cast<double>(state.total_steps),
      0.0, 1.0);
}

// What a training is asked for most.
std::string main_details(const ProgressState& state) {
  std::string text;
  if (state.loss) text += " loss " + value_text(*state.loss);
  if (state.lr) text += fmt::format(" lr {:.4g}", *state.lr);
  if (state.samples_per_second) {
    text += fmt::format(" {} samples/s", rate_text(*state.samples_per_second));
  }
  return text;
}

std::string epoch_text(const ProgressState& state) {
  if (state.total_epochs <= 0) return "";
  return fmt::format(" epoch {}/{}", state.epoch, state.total_epochs);
}

std::string details(const ProgressState& state) {
  std::string text = epoch_text(state) + main_details(state);
  for (const auto& [name, value] : state.extra) {
    text += fmt::format(" {} {}", name, value_text(value));
  }
  return text;
}

std::string speed_text(const ProgressState& state) {
  const double rate = steps_per_second(state);
  if (rate == 0) return "? it/s";
  return rate >= 1 ? rate_text(rate) + " it/s" : rate_text(1 / rate) + " s/it";
}

std::string cells(double filled, int count, const BarStyle& style) {
  std::string text;
  if (!style.is_utf8) {
    text.assign(static_cast<size_t>(filled * count), '#');
    text.resize(static_cast<size_t>(count), '-');
    return text;
  }
  const int eighths = static_cast<int>(filled * count * kEighths);
  for (int i = 0; i < eighths / kEighths; ++i) text += "\u2588";
  text += kPartialBlocks[static_cast<size_t>(eighths % kEighths)];
  text.append(static_cast<size_t>(count - width_of(text)), ' ');
  return text;
}

}  // namespace

std::string clock_text(double seconds) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0 && seconds < kLongest)) return "?";
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t hours = whole / 3600;
  const std::string rest =
      fmt::format("{:02}:{:02}", whole / 60 % 60, whole % 60);
  return hours == 0 ? rest : fmt::format("{}:{}", hours, rest);
}

std::string bar_text(const ProgressState& state, const BarStyle& style) {
  const int columns = std::max(1, style.columns - 1);
  const std::string count = count_text(state.step, state.total_steps);
  const std::string elapsed = clock_text(state.seconds_elapsed);
  if (state.total_steps <= 0) {
    return cut(fmt::format("{} {} [{}, {}]{}", state.label, count, elapsed,
                           speed_text(state), details(state)),
               columns);
  }
  const double filled = fraction(state);
  const std::string left =
      fmt::format("{} {:3}%|", state.label, static_cast<int>(filled * 100));
  const std::string remaining = clock_text(seconds_left(state));
  const std::string known = epoch_text(state) + main_details(state);
  // The first that fits: a narrow terminal shows what matters most.
  std::string right;
  for (const std::string& text :
       {fmt::format("| {} [{}<{}, {}]{}", count, elapsed, remaining,
                    speed_text(state), details(state)),
        fmt::format("| {} [{}<{}, {}]{}", count, elapsed, remaining,
                    speed_text(state), known),
        fmt::format("| {} [{}<{}]{}", count, elapsed, remaining, known),
        fmt::format("| {} <{}{}", count, remaining, main_details(state))}) {
    right = text;
    if (width_of(left) + kFewestCells + width_of(text) <= columns) break;
  }
  const int room = columns - width_of(left) - width_of(right);
  const int num_cells = std::clamp(room, kFewestCells, kMostCells);
  return cut(left + cells(filled, num_cells, style) + right, columns);
}

std::string line_text(const ProgressState& state) {
  std::string text = state.label == kTrainLabel ? "" : state.label + " ";
  text += "step " + count_text(state.step, state.total_steps) + details(state);
  if (state.total_steps > 0) text += " eta " + clock_text(seconds_left(state));
  return text;
}

}  // namespace lockstep::track
