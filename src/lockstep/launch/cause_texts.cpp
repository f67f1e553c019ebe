#include <sys/statvfs.h>

#include <algorithm>
#include <array>

#include "lockstep/launch/cause.h"

namespace lockstep::launch {
namespace {

constexpr std::array kTexts = {
    CauseText{.cause = Cause::kGpuMemory,
              .name = "out of GPU memory",
              .meaning = "a GPU's memory is full: halve --batch_size and "
                         "double --gradient_accumulation_steps, or use "
                         "--precision bf16",
              .next = "nvidia-smi",
              .anchor = "out-of-gpu-memory"},
    CauseText{.cause = Cause::kHostMemory,
              .name = "out of host memory (OOM killer)",
              .meaning = "the kernel killed a rank or refused it memory: use "
                         "fewer --workers, a smaller --batch_size or fewer "
                         "processes, or raise the limit",
              .next = "free -h",
              .anchor = "out-of-host-memory-oom-killer"},
    CauseText{.cause = Cause::kException,
              .name = "exception",
              .meaning = "the program of a rank ended by an error of its own, "
                         "which says what to change",
              .next = "cat ERROR_FILE",
              .anchor = "exception"},
    CauseText{.cause = Cause::kSignal,
              .name = "signal",
              .meaning = "a signal ended a rank: a crash in native code, or a "
                         "kill from outside",
              .next = "dmesg -T | tail -n 20",
              .anchor = "signal"},
    CauseText{.cause = Cause::kDataStarvation,
              .name = "data starvation",
              .meaning = "a rank waited for its next batch until the limit "
                         "was over: the storage hangs, or the loader is too "
                         "slow",
              .next = "lockstep doctor JOB",
              .anchor = "data-starvation"},
    CauseText{
        .cause = Cause::kUnequalBatches,
        .name = "unequal number of batches",
        .meaning = "a rank left its loop while others still trained: "
                   "all ranks need the same number of steps "
                   "(Uneven::kPad), or a loop inside ddp.join(...)",
        .next = "grep -rnE 'kExact|drop_last|break|return' --include=*.cpp .",
        .anchor = "unequal-number-of-batches"},
    CauseText{.cause = Cause::kDesync,
              .name = "desynchronised collectives",
              .meaning = "the ranks called different collectives: look for "
                         "one that only some ranks call, such as inside if "
                         "(world.is_main()), and for settings that differ",
              .next = "grep -rnE 'is_main|rank\\(\\)' --include=*.cpp .",
              .anchor = "desynchronised-collectives"},
    CauseText{.cause = Cause::kStall,
              .name = "stall",
              .meaning = "a rank is stopped, hangs or is slower than the "
                         "limit of a collective; raise --timeout only when it "
                         "is slow on purpose",
              .next = "lockstep board",
              .anchor = "stall"},
    CauseText{.cause = Cause::kPort,
              .name = "port",
              .meaning = "another program listens at the master port: leave "
                         "--master-port and MASTER_PORT out, a free port is "
                         "chosen",
              .next = "unset MASTER_PORT",
              .anchor = "port"},
    CauseText{.cause = Cause::kInterface,
              .name = "interface",
              .meaning = "a network interface, address or host name of the "
                         "job does not exist here: unset GLOO_SOCKET_IFNAME, "
                         "NCCL_SOCKET_IFNAME and MASTER_ADDR, or correct them",
              .next = "ip -br addr",
              .anchor = "interface"},
    CauseText{.cause = Cause::kSharedMemory,
              .name = "shared memory",
              .meaning = "/dev/shm is full or too small: remove files there, "
                         "or start the container with --shm-size=8g",
              .next = "df -h /dev/shm",
              .anchor = "shared-memory"},
    CauseText{.cause = Cause::kDiskFull,
              .name = "disk full",
              .meaning = "a file could not be written, because a disk, a "
                         "quota or a limit of file sizes is exhausted: remove "
                         "files or choose another --save_dir",
              .next = "df -h RUN",
              .anchor = "disk-full"},
    CauseText{.cause = Cause::kNan,
              .name = "NaN",
              .meaning = "the loss or its gradients became NaN or infinite: "
                         "lower --lr, raise --warmup_steps, set "
                         "--max_grad_norm 1, or use --precision bf16 or fp32",
              .next = "lockstep runs show RUN",
              .anchor = "nan"},
};

}  // namespace

std::span<const CauseText> cause_texts() { return kTexts; }

const CauseText& text_of(Cause cause) {
  return *std::ranges::find(kTexts, cause, &CauseText::cause);
}

SharedMemorySize shared_memory_size() {
  struct statvfs info{};
  if (statvfs("/dev/shm", &info) != 0) return {};
  const auto block = static_cast<int64_t>(info.f_frsize);
  return {.total_bytes = static_cast<int64_t>(info.f_blocks) * block,
          .free_bytes = static_cast<int64_t>(info.f_bavail) * block};
}

}  // namespace lockstep::launch
