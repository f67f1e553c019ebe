// How long to wait before a failed job is started again.
#pragma once

namespace lockstep::launch {

// The first restart comes at once, those after further quick failures 1, 2, 4
// ... seconds later, up to 30 s: a job that cannot start must not keep the
// machine busy with starting.
class RestartDelay {
 public:
  // An attempt that ran this long did not fail quickly.
  static constexpr double kSettledSeconds = 60;
  static constexpr double kMaxSeconds = 30;

  // Seconds to wait after an attempt that failed after `attempt_seconds`.
  double after(double attempt_seconds);

 private:
  double next_ = 0;
};

}  // namespace lockstep::launch
