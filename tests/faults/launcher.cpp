#include "faults/launcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/launch/processes.h"

namespace lockstep::testing {

Words job(const Words& options) {
  Words command = {LOCKSTEP_PROGRAM, "run"};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

Words shell_job(const Words& options, const std::string& script) {
  Words command = job(options);
  for (const std::string& word : Words{"sh", "-c", script}) {
    command.push_back(word);
  }
  return command;
}

Words python_job(const Words& options, const std::string& script) {
  Words command = job(options);
  for (const std::string& word : Words{LOCKSTEP_PYTHON, "-u", "-c", script}) {
    command.push_back(word);
  }
  return command;
}

ProcessResult run_shell(const Words& options, const std::string& script,
                        ProcessOptions process) {
  return run(shell_job(options, script), std::move(process));
}

ProcessOptions with_temp(const TempDir& folder) {
  return {.environment = {{"TMPDIR", folder.path().string()}}};
}

int count(const std::string& text, const std::string& part) {
  int number = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++number;
  }
  return number;
}

void wait_until_ready(const Process& launcher) {
  ASSERT_TRUE(launcher.wait_for_output("ready 0", 120));
  ASSERT_TRUE(launcher.wait_for_output("ready 1", 120));
}

void wait_for_family(const Process& launcher) {
  wait_until_ready(launcher);
  // Two workers, three children each, front, guard and keeper.
  ASSERT_TRUE(wait_for(
      [&] { return find_marked(launcher.marker()).size() >= 11; }, 30));
}

Words sorted_lines(const std::string& text) {
  Words lines = base::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::sort(lines.begin(), lines.end());
  return lines;
}

namespace {

pid_t find_named(pid_t launcher, const std::string& name) {
  for (const launch::ProcessInfo& process :
       launch::find_descendants(launcher)) {
    if (process.command == name) return process.pid;
  }
  return 0;
}

}  // namespace

std::string cause_in(const std::string& report) {
  return report.substr(std::min(report.size(), report.find("Root Cause")));
}

pid_t find_guard(pid_t launcher) { return find_named(launcher, "job-guard"); }

pid_t find_keeper(pid_t launcher) {
  return find_named(launcher, "lockstep-keeper");
}

const char* const kStoreInPython = R"(
import os, socket, struct, sys, time

def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data

def receive(store, size):
    data = b""
    while len(data) < size:
        part = store.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data

def connect():
    store = socket.socket()
    store.connect((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall(b"\0" + struct.pack("<I", 0x3C85F7CE))
    return store
)";

}  // namespace lockstep::testing
