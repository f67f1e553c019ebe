// Learning rates are those of Python's schedulers; the other side is
// python/schedule_reference.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "lockstep/optim/plateau.h"
#include "lockstep/schedule.h"
#include "support/process.h"

namespace lockstep {
namespace {

// The stream's own operator does not read hexadecimal numbers.
double number(std::istream& in) {
  std::string text;
  in >> text;
  return std::strtod(text.c_str(), nullptr);
}

void compare_schedule(std::istream& in) {
  ScheduleConfig config;
  in >> config.kind >> config.warmup_updates >> config.total_updates;
  config.min_lr = number(in);
  in >> config.step_updates;
  config.gamma = number(in);
  const double base = number(in);
  std::string how;
  int64_t count = 0;
  in >> how >> count;
  for (int64_t update = 1; update <= count; ++update) {
    const double theirs = number(in);
    const double ours = lr_at(config, base, update);
    const double allowed = how == "exact" ? 0 : 1e-12 * base;
    ASSERT_LE(std::abs(ours - theirs), allowed)
        << config.kind << " at update " << update << ": " << ours << ", not "
        << theirs;
  }
}

// Returns how often the rate was reduced.
int compare_plateau(std::istream& in) {
  optim::PlateauConfig config;
  in >> config.mode >> config.threshold_mode;
  config.factor = number(in);
  in >> config.patience;
  config.threshold = number(in);
  in >> config.cooldown;
  config.base_lr = number(in);
  config.min_lr = number(in);
  config.eps = number(in);
  int count = 0;
  in >> count;
  optim::Plateau plateau(config);
  int num_reductions = 0;
  for (int i = 0; i < count; ++i) {
    const double before = plateau.lr();
    plateau.observe(number(in));
    const double theirs = number(in);
    EXPECT_EQ(plateau.lr(), theirs) << config.mode << ", metric " << i;
    num_reductions += plateau.lr() != before;
  }
  return num_reductions;
}

TEST(ScheduleParity, EqualsPython) {
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/schedule_reference.py"},
                   {.environment = {}, .folder = "", .ignored_signals = {}});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::istringstream in(python.out);
  int num_schedules = 0;
  int num_plateaus = 0;
  int num_reductions = 0;
  for (std::string what; in >> what;) {
    if (what == "schedule") {
      compare_schedule(in);
      ++num_schedules;
    } else {
      ASSERT_EQ(what, "plateau");
      num_reductions += compare_plateau(in);
      ++num_plateaus;
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(num_schedules, 48);
  EXPECT_EQ(num_plateaus, 96);
  EXPECT_GT(num_reductions, 300);
}

}  // namespace
}  // namespace lockstep
