#include "lockstep/base/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::base {

int64_t num_workers(int64_t num_items, int64_t num_threads) {
  constexpr int64_t kMaxThreads = 16;
  if (num_threads <= 0) {
    num_threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1,
                                      kMaxThreads);
  }
  return std::clamp<int64_t>(num_items, 1, num_threads);
}

void run_workers(int64_t num_items, int64_t num_threads,
                 const std::function<void(int64_t)>& work,
                 const ShowProgress& progress) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  int64_t num_done = 0;
  std::exception_ptr error;
  const auto loop = [&] {
    try {
      for (int64_t i = next++; i < num_items; i = next++) {
        work(i);
        if (!progress) continue;
        const std::scoped_lock lock(mutex);
        progress(++num_done, num_items);
      }
    } catch (...) {
      next = num_items;
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  const int64_t count = num_workers(num_items, num_threads);
  while (std::ssize(threads) < count - 1) threads.emplace_back(loop);
  loop();
  threads.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace lockstep::base
