// The byte pipe from the front process to the keeper: one byte per signal, end
// of file when the front is gone.
#pragma once

#include <vector>

#include "lockstep/base/files.h"

namespace lockstep {

class ControlReader {
 public:
  explicit ControlReader(FileDescriptor pipe);

  int fd() const { return pipe_.get(); }
  // The signals that arrived since the last call.
  std::vector<int> read();
  // The front process does not exist any more.
  bool is_abandoned() const { return is_abandoned_; }

 private:
  FileDescriptor pipe_;
  bool is_abandoned_ = false;
};

struct ControlPipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};
ControlPipe make_control_pipe();  // Throws IoError.

void send_signal(const FileDescriptor& write_end, int signal);

}  // namespace lockstep
