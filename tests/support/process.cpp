#include "support/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

std::string next_marker() {
  static std::atomic<int> count = 0;
  return "LOCKSTEP_TEST_MARKER=" + std::to_string(getpid()) + "." +
         std::to_string(++count) + "." + std::to_string(base::monotonic_ns());
}

base::FileDescriptor capture_file() {
  base::FileDescriptor file(memfd_create("captured", MFD_CLOEXEC));
  // Several processes write at once; the position of a memfd is not locked.
  fcntl(file.get(), F_SETFL, O_APPEND);
  if (!file) throw IoError("cannot capture output: " + base::errno_text());
  return file;
}

std::string contents(const base::FileDescriptor& file) {
  std::string text;
  std::array<char, 65536> buffer;
  off_t at = 0;
  while (true) {
    const ssize_t count = pread(file.get(), buffer.data(), buffer.size(), at);
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
    at += count;
  }
}

// The tests themselves may run below a launcher.
bool is_launcher_variable(const std::string& name) {
  for (const char* prefix : {"PET_", "TORCHELASTIC_", "LOCKSTEP_", "MASTER_",
                             "SLURM_", "OMPI_", "PMI", "MPI_", "MV2_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name == "CUDA_VISIBLE_DEVICES" || name == "OMP_NUM_THREADS" ||
         name == "NCCL_TIMEOUT" || name == "TORCH_DISTRIBUTED_TIMEOUT" ||
         name == "PYTHON_EXEC";
}

std::vector<std::string> environment_entries(const ProcessOptions& options) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : base::process_environment()) {
    if (is_launcher_variable(name) || options.environment.count(name) > 0) {
      continue;
    }
    entries.push_back(name + "=" + value);
  }
  for (const auto& [name, value] : options.environment) {
    entries.push_back(name + "=" + value);
  }
  return entries;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

bool is_alive(pid_t pid) {
  const auto stat =
      base::try_read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return false;
  const auto close = stat->rfind(')');
  return close != std::string::npos && close + 2 < stat->size() &&
         (*stat)[close + 2] != 'Z' && (*stat)[close + 2] != 'X';
}

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 ProcessOptions options)
    : begin_(now_seconds()),
      deadline_(begin_ + options.timeout_seconds),
      marker_(next_marker()),
      out_(capture_file()),
      err_(capture_file()) {
  auto entries = environment_entries(options);
  entries.push_back(marker_);
  const auto arguments = pointers_to(command);
  const auto environment = pointers_to(entries);
  pid_ = fork();
  if (pid_ < 0) throw IoError("cannot fork: " + base::errno_text());
  if (pid_ > 0) return;
  const int terminal = options.terminal_fd;
  dup2(terminal < 0 ? out_.get() : terminal, STDOUT_FILENO);
  dup2(terminal < 0 ? err_.get() : terminal, STDERR_FILENO);
  for (const int signal : options.ignored_signals) ::signal(signal, SIG_IGN);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(99);
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(98);
}

Process::~Process() {
  if (is_waited_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const { kill(pid_, signal); }

ProcessResult Process::wait() {
  ProcessResult result;
  int status = 0;
  const bool ended =
      wait_for([&] { return waitpid(pid_, &status, WNOHANG) == pid_; },
               deadline_ - now_seconds());
  if (!ended) {
    result.timed_out = true;
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  is_waited_ = true;
  result.exit_code =
      WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  result.seconds = now_seconds() - begin_;
  result.out = out();
  result.err = err();
  if (result.timed_out) {
    result.err += "\n(the test killed it after " +
                  std::to_string(result.seconds) + " s)\n";
  }
  return result;
}

std::string Process::out() const { return contents(out_); }
std::string Process::err() const { return contents(err_); }

bool Process::wait_for_output(const std::string& text, double seconds) const {
  return wait_for([&] { return out().find(text) != std::string::npos; },
                  seconds);
}

std::string beside_this_program(const char* name) {
  return std::filesystem::canonical("/proc/self/exe").parent_path() / name;
}

ProcessResult run(const std::vector<std::string>& command,
                  ProcessOptions options) {
  return Process(command, std::move(options)).wait();
}

std::vector<pid_t> find_marked(const std::string& marker) {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  while (const dirent* entry = readdir(folder.get())) {
    const auto number = base::parse_integer(entry->d_name);
    if (!number) continue;
    const auto pid = static_cast<pid_t>(*number);
    const auto environment =
        base::try_read_file("/proc/" + std::string(entry->d_name) + "/environ");
    if (environment && environment->find(marker) != std::string::npos &&
        is_alive(pid)) {
      found.push_back(pid);
    }
  }
  return found;
}

std::vector<pid_t> wait_until_gone(const std::string& marker, double seconds) {
  wait_for([&] { return find_marked(marker).empty(); }, seconds);
  return find_marked(marker);
}

double now_seconds() { return base::seconds_between(0, base::monotonic_ns()); }

void sleep_briefly() {
  const timespec time{.tv_sec = 0, .tv_nsec = 3'000'000};
  nanosleep(&time, nullptr);
}

}  // namespace lockstep::testing
