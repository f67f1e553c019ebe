#include "lockstep/recipes/protein/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

void run_workers(int64_t num_items, int64_t num_threads,
                 const std::function<void(int64_t)>& work) {
  constexpr int64_t kMaxThreads = 16;
  if (num_threads <= 0) {
    num_threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1,
                                      kMaxThreads);
  }
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto loop = [&] {
    try {
      for (int64_t i = next++; i < num_items; i = next++) work(i);
    } catch (...) {
      next = num_items;
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int64_t i = 1; i < std::min(num_threads, num_items); ++i) {
    threads.emplace_back(loop);
  }
  loop();
  threads.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace lockstep
