#include "lockstep/base/recovery_page.h"

#include "lockstep/base/status.h"
#include "lockstep/base/status_memory.h"
#include "lockstep/base/training_status.h"

namespace lockstep::base {
namespace {

static_assert(RecoveryPage::kOffset >= offsetof(StatusPage, reserved));
static_assert(RecoveryPage::kOffset >=
              TrainingPage::kOffset + sizeof(TrainingPage));

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
  return true;
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

}  // namespace lockstep::base
