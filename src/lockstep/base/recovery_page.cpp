#include "lockstep/base/recovery_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "lockstep/base/status.h"
#include "lockstep/base/status_memory.h"
#include "lockstep/base/training_status.h"

namespace lockstep::base {
namespace {

static_assert(RecoveryPage::kOffset >= offsetof(StatusPage, reserved));
static_assert(RecoveryPage::kOffset >=
              TrainingPage::kOffset + sizeof(TrainingPage));
static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Across processes: the page is shared memory.
void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

RecoveryReader::RecoveryReader(int status_fd)
    : page_(map_status_part<RecoveryPage>(status_fd)) {}

bool RecoveryReader::is_ready() const {
  return page_ != nullptr && page_->is_ready != 0;
}

bool RecoveryReader::is_over() const {
  return page_ != nullptr && (page_->generation & RecoveryPage::kOver) != 0;
}

bool RecoveryReader::announce(int generation) const {
  if (page_ == nullptr) return false;
  int32_t before = page_->generation;
  do {
    if ((before & RecoveryPage::kOver) != 0) return false;
  } while (!page_->generation.compare_exchange_weak(before, generation));
  page_->is_suspended = 0;
  return true;
}

void RecoveryReader::suspend() const {
  if (page_ == nullptr) return;
  page_->is_suspended = 1;
  ++page_->interrupts;
  wake_all(page_->interrupts);
}

RecoveryWriter::RecoveryWriter() : page_(std::make_shared<RecoveryPage>()) {}

RecoveryWriter RecoveryWriter::from_environment(
    const Environment& environment) {
  RecoveryWriter writer;
  const auto fd = find_integer(environment, "LOCKSTEP_STATUS_FD");
  if (!fd || !is_status_memory(static_cast<int>(*fd))) return writer;
  if (auto page = map_status_part<RecoveryPage>(static_cast<int>(*fd))) {
    writer.page_ = std::move(page);
  }
  return writer;
}

void RecoveryWriter::set_ready() { page_->is_ready = 1; }

bool RecoveryWriter::is_ready() const { return page_->is_ready != 0; }

int RecoveryWriter::generation() const {
  return page_->generation & ~RecoveryPage::kOver;
}

void RecoveryWriter::ask_all() { page_->asks_all = 1; }

bool RecoveryWriter::take_request_to_all() {
  return page_->asks_all.exchange(0) != 0;
}

bool RecoveryWriter::end(int generation) {
  int32_t before = generation;
  return page_->generation.compare_exchange_strong(
             before, generation | RecoveryPage::kOver) ||
         before == (generation | RecoveryPage::kOver);
}

bool RecoveryWriter::is_suspended() const { return page_->is_suspended != 0; }

uint32_t RecoveryWriter::interrupts() const { return page_->interrupts; }

void RecoveryWriter::wait_for_interrupt(uint32_t seen,
                                        std::chrono::milliseconds limit) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec left{
      .tv_sec = seconds.count(),
      .tv_nsec = std::chrono::nanoseconds(limit - seconds).count()};
  syscall(SYS_futex, &page_->interrupts, FUTEX_WAIT, seen, &left, nullptr, 0);
}

void RecoveryWriter::wake_waiting() const { wake_all(page_->interrupts); }

}  // namespace lockstep::base
