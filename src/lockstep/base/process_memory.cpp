#include "lockstep/base/process_memory.h"

#include <unistd.h>

#include <sstream>

#include "lockstep/base/files.h"

namespace lockstep::base {

ProcessMemory process_memory() {
  int64_t mapped_pages = 0;
  int64_t resident_pages = 0;
  std::istringstream statm(try_read_file("/proc/self/statm").value_or("0 0"));
  statm >> mapped_pages >> resident_pages;
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return {.mapped_bytes = mapped_pages * page_bytes,
          .resident_bytes = resident_pages * page_bytes};
}

}  // namespace lockstep::base
