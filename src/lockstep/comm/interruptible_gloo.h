// Gloo's collectives where ranks are replaced: what waits for one can be told
// that it will not end.
//
// When a connection ends, Gloo tells those that wait to receive, but not who
// waits for a send that is under way: until its time limit.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace c10d {
class Backend;
}

namespace lockstep::comm {

// Those of one world that are under way. May be used on any thread.
class OpenCollectives {
 public:
  // All fail, and those that are started later. The first error counts.
  void fail(const std::exception_ptr& error);
  bool have_failed() const;

  // `fail` may be called until remove(), and keeps what it needs alive.
  using Fail = std::function<void(const std::exception_ptr& error)>;
  void add(const void* work, Fail fail);
  void remove(const void* work);

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::map<const void*, Fail> works_;
};

// Ends backends of Gloo on threads of their own: its threads end within 10 ms
// once their connections are shut down, or wait for a send until its time
// limit. May be used on any thread.
class GlooEnds {
 public:
  GlooEnds() = default;
  ~GlooEnds();  // Waits for those that end soon.
  GlooEnds(const GlooEnds&) = delete;
  GlooEnds& operator=(const GlooEnds&) = delete;

  void end(c10::intrusive_ptr<c10d::Backend> gloo);

 private:
  std::mutex mutex_;
  std::vector<std::future<void>> under_way_;
};

// A collective that fails takes all others along: the world has lost a rank.
// The backend's end leaves that of `gloo` to `ends` once they have failed.
c10::intrusive_ptr<c10d::Backend> make_interruptible(
    const c10::intrusive_ptr<c10d::Backend>& gloo,
    std::shared_ptr<OpenCollectives> collectives,
    std::shared_ptr<GlooEnds> ends);

}  // namespace lockstep::comm
