#include "lockstep/launch/error_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/launch/ranks_text.h"

namespace lockstep::launch {
namespace {

// More than that is not an error, and must not fill the memory.
constexpr size_t kMaxHeldBytes = 65536;

std::string rank_prefix(int rank) { return fmt::format("[rank{}]: ", rank); }

std::string with_prefix(int rank, std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    text += rank_prefix(rank);
    text += lines.substr(0, end);
    lines.remove_prefix(end);
  }
  return text;
}

// "ConfigError" of "ConfigError: text"; empty for anything else.
std::string_view kind_of(std::string_view lines) {
  const std::string_view kind = lines.substr(0, lines.find(": "));
  const bool is_name =
      kind.size() < lines.size() && std::ranges::all_of(
                                        kind,
                                        [](unsigned char letter) {
                                          return std::isalnum(letter) != 0 ||
                                                 letter == '_' || letter == '.';
                                        });
  return is_name ? kind : std::string_view();
}

// "PeerError: rank 0 failed: TEXT", where rank 0 says "ConfigError: TEXT".
bool repeats(std::string_view lines, int rank, std::string_view error) {
  const std::string begin = fmt::format("PeerError: rank {} failed: ", rank);
  const size_t kind = kind_of(error).size();
  return kind > 0 && lines.starts_with(begin) &&
         lines.substr(begin.size()) == error.substr(kind + 2);
}

}  // namespace

std::string shared_error_text(std::string_view lines, std::string_view where) {
  const std::string_view kind = kind_of(lines);
  if (kind.empty()) return fmt::format("on {}:\n{}", where, lines);
  return fmt::format("{} on {}{}", kind, where, lines.substr(kind.size()));
}

bool ErrorLines::take(int rank, std::string_view line, int64_t now_ns) {
  const std::string prefix = rank_prefix(rank);
  const auto held = held_.find(rank);
  const size_t size = held == held_.end() ? 0 : held->second.lines.size();
  if (!line.starts_with(prefix) || size + line.size() > kMaxHeldBytes) {
    write_unchanged(rank);
    return false;
  }
  if (held == held_.end()) held_[rank].since_ns = now_ns;
  line.remove_prefix(prefix.size());
  held_[rank].lines += line;
  if (!line.ends_with('\n')) held_[rank].lines += '\n';
  return true;
}

void ErrorLines::set_end(int rank, int exit_code) {
  exit_codes_[rank] = exit_code;
}

bool ErrorLines::has_failed(int rank) const {
  const auto end = exit_codes_.find(rank);
  return end != exit_codes_.end() && end->second != 0;
}

int64_t ErrorLines::release_ns(int rank, const Held& held) const {
  if (has_failed(rank)) return held.since_ns + kAgreeNs;
  return exit_codes_.contains(rank) ? held.since_ns : held.since_ns + kAliveNs;
}

std::optional<int64_t> ErrorLines::next_release_ns() const {
  std::optional<int64_t> next;
  for (const auto& [rank, held] : held_) {
    const int64_t at = release_ns(rank, held);
    next = std::min(at, next.value_or(at));
  }
  return next;
}

bool ErrorLines::is_echo(int rank) const {
  const std::string& lines = held_.at(rank).lines;
  for (const auto& [other, held] : held_) {
    if (has_failed(other) && repeats(lines, other, held.lines)) return true;
  }
  return std::ranges::any_of(written_, [&](const auto& error) {
    return repeats(lines, error.first, error.second);
  });
}

void ErrorLines::release(int64_t now_ns) {
  std::vector<int> late;
  for (const auto& [rank, held] : held_) {
    if (release_ns(rank, held) <= now_ns) late.push_back(rank);
  }
  const bool has_late_error =
      std::ranges::any_of(late, [this](int rank) { return has_failed(rank); });
  for (const int rank : late) {
    if (!has_failed(rank)) write_unchanged(rank);
  }
  if (has_late_error) write_failed();
}

void ErrorLines::set_num_ranks(int num_ranks) {
  finish();
  num_ranks_ = num_ranks;
  written_.clear();
  exit_codes_.clear();
}

void ErrorLines::finish() {
  write_failed();
  while (!held_.empty()) write_unchanged(held_.begin()->first);
}

void ErrorLines::write_unchanged(int rank) {
  const auto held = held_.find(rank);
  if (held == held_.end()) return;
  console_.write(with_prefix(rank, held->second.lines));
  held_.erase(held);
}

// Those of failed ranks, equal ones together, in the order of the ranks.
void ErrorLines::write_failed() {
  std::vector<int> failed;
  for (const auto& [rank, held] : held_) {
    if (has_failed(rank)) failed.push_back(rank);
  }
  std::vector<int> echoes = failed;
  std::erase_if(echoes, [this](int rank) { return !is_echo(rank); });
  for (const int rank : echoes) {
    std::erase(failed, rank);
    held_.erase(rank);
  }
  while (!failed.empty()) {
    const std::string lines = held_[failed.front()].lines;
    std::vector<int> alike;
    std::erase_if(failed, [&](int rank) {
      if (held_[rank].lines != lines) return false;
      alike.push_back(rank);
      written_[rank] = lines;
      return true;
    });
    if (alike.size() == 1) {
      write_unchanged(alike.front());
      continue;
    }
    console_.write(shared_error_text(lines, ranks_text(alike, num_ranks_)));
    for (const int rank : alike) held_.erase(rank);
  }
}

}  // namespace lockstep::launch
