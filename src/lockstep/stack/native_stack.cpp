#include "lockstep/stack/native_stack.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "lockstep/base/demangle.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/stack/stopped_threads.h"

namespace lockstep::stack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxThreads = 128;
constexpr size_t kMostFrames = 128;

// Functions of libdw, by name: packages do not depend on it.
class Libdw {
 public:
  Libdw() : library_(dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      throw IoError(
          "libdw.so.1 is missing, which reads stacks; apt-get install libdw1");
    }
  }

  template <typename Function>
  Function* find(const char* name) const {
    auto* function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) {
      throw IoError(fmt::format("libdw.so.1 of this system has no {}", name));
    }
    return function;
  }

 private:
  void* library_;
};
#define LOCKSTEP_LIBDW(function) (libdw_.find<decltype(function)>(#function))

extern "C" int note_frame(Dwfl_Frame* state, void* argument);

class Unwinder {
 public:
  explicit Unwinder(pid_t pid)
      : pid_(pid),
        frame_pc_(LOCKSTEP_LIBDW(dwfl_frame_pc)),
        session_(nullptr, LOCKSTEP_LIBDW(dwfl_end)) {
    callbacks_.find_elf = LOCKSTEP_LIBDW(dwfl_linux_proc_find_elf);
    // Separate files of debug information are not looked for: that may take
    // minutes, and ask a server.
    callbacks_.find_debuginfo = [](auto...) { return -1; };
    session_.reset(LOCKSTEP_LIBDW(dwfl_begin)(&callbacks_));
    std::error_code ignored;
    program_ = fs::read_symlink(fmt::format("/proc/{}/exe", pid), ignored);
  }

  // The threads are stopped already.
  void attach() {
    require(LOCKSTEP_LIBDW(dwfl_linux_proc_report)(session_.get(), pid_) == 0);
    require(LOCKSTEP_LIBDW(dwfl_report_end)(session_.get(), nullptr, nullptr) ==
            0);
    constexpr bool kIsStopped = true;
    require(LOCKSTEP_LIBDW(dwfl_linux_proc_attach)(session_.get(), pid_,
                                                   kIsStopped) == 0);
  }

  std::vector<uint64_t> addresses(pid_t thread) {
    found_.clear();
    LOCKSTEP_LIBDW(dwfl_getthread_frames)(session_.get(), thread, note_frame,
                                          this);
    return found_;
  }

  bool note(Dwfl_Frame* state) {
    Dwarf_Addr address = 0;
    bool is_exact = false;
    if (!frame_pc_(state, &address, &is_exact)) return false;
    // A return address belongs to the line behind the call.
    found_.push_back(is_exact || address == 0 ? address : address - 1);
    return found_.size() < kMostFrames;
  }

  Frame frame_at(uint64_t address) const {
    Frame frame{.function = "", .offset = address, .module = "?"};
    Dwfl_Module* module =
        LOCKSTEP_LIBDW(dwfl_addrmodule)(session_.get(), address);
    if (module == nullptr) return frame;
    Dwarf_Addr begin = 0;
    const char* file = nullptr;
    const char* name = LOCKSTEP_LIBDW(dwfl_module_info)(
        module, nullptr, &begin, nullptr, nullptr, nullptr, &file, nullptr);
    const fs::path path = file != nullptr ? file : name;
    frame.module = path.filename().string();
    frame.is_program = path == program_;
    frame.offset = address - begin;
    GElf_Off offset = 0;
    GElf_Sym symbol{};
    const char* function = LOCKSTEP_LIBDW(dwfl_module_addrinfo)(
        module, address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (function == nullptr) return frame;
    frame.function = base::demangled(function);
    frame.offset = offset;
    return frame;
  }

 private:
  void require(bool is_done) const {
    if (is_done) return;
    const char* why = LOCKSTEP_LIBDW(dwfl_errmsg)(-1);
    throw IoError(fmt::format("libdw cannot read process {}: {}", pid_,
                              why == nullptr ? "unknown error" : why));
  }

  Libdw libdw_;
  pid_t pid_;
  Dwfl_Callbacks callbacks_{};
  decltype(&dwfl_frame_pc) frame_pc_;
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session_;
  fs::path program_;
  std::vector<uint64_t> found_;
};

int note_frame(Dwfl_Frame* state, void* argument) {
  return static_cast<Unwinder*>(argument)->note(state) ? DWARF_CB_OK
                                                       : DWARF_CB_ABORT;
}

// The main thread first.
std::vector<ThreadStack> list_threads(pid_t pid) {
  std::vector<ThreadStack> threads;
  std::error_code error;
  for (fs::directory_iterator task(fmt::format("/proc/{}/task", pid), error),
       end;
       !error && task != end && threads.size() < kMaxThreads;
       task.increment(error)) {
    ThreadStack& thread = threads.emplace_back();
    thread.id = static_cast<pid_t>(
        base::parse_integer(task->path().filename().string()).value_or(0));
    const auto name = base::try_read_file(task->path() / "comm");
    if (name) thread.name = base::trim(*name);
    const auto stat = base::try_read_file(task->path() / "stat");
    const size_t close = stat ? stat->rfind(')') : std::string::npos;
    if (close != std::string::npos && close + 2 < stat->size()) {
      thread.state = (*stat)[close + 2];
    }
  }
  std::ranges::sort(threads, {}, [pid](const ThreadStack& thread) {
    return std::pair(thread.id != pid, thread.id);
  });
  return threads;
}

}  // namespace

std::vector<ThreadStack> read_native_stacks(pid_t pid) {
  std::vector<ThreadStack> threads = list_threads(pid);
  if (threads.empty()) throw IoError("there is no such process");
  Unwinder unwinder(pid);
  std::vector<pid_t> ids;
  ids.reserve(threads.size());
  for (const ThreadStack& thread : threads) ids.push_back(thread.id);
  std::vector<std::vector<uint64_t>> addresses(threads.size());
  {
    const StoppedThreads stopped(ids);
    unwinder.attach();
    for (size_t i = 0; i < threads.size(); ++i) {
      if (stopped.is_stopped(threads[i].id)) {
        addresses[i] = unwinder.addresses(threads[i].id);
      } else {
        threads[i].problem = "the kernel does not stop it";
      }
    }
  }
  // Names take longer: the process runs again by now.
  for (size_t i = 0; i < threads.size(); ++i) {
    for (const uint64_t address : addresses[i]) {
      threads[i].frames.push_back(unwinder.frame_at(address));
    }
  }
  return threads;
}

}  // namespace lockstep::stack
