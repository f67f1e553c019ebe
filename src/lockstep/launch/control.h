// The byte pipes between the front process and the keeper. To the keeper: one
// byte per signal, end of file when the front is gone. Back: the same bytes as
// an answer, end of file when the keeper is gone.
#pragma once

#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::launch {

class ControlReader {
 public:
  ControlReader(base::FileDescriptor pipe, base::FileDescriptor answers);

  int fd() const { return pipe_.get(); }
  // The signals that arrived since the last call, which are answered by it.
  std::vector<int> read();
  // The front process does not exist any more.
  bool is_abandoned() const { return is_abandoned_; }

 private:
  base::FileDescriptor pipe_;
  base::FileDescriptor answers_;
  bool is_abandoned_ = false;
};

struct ControlPipe {
  base::FileDescriptor read_end;
  base::FileDescriptor write_end;
};
ControlPipe make_control_pipe();  // Throws IoError.

void send_signal(const base::FileDescriptor& write_end, int signal);

}  // namespace lockstep::launch
