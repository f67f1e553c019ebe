#include "lockstep/text/bpe_model.h"

#include <fmt/format.h>

#include <queue>
#include <tuple>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::text {
namespace {

uint64_t pair_key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         byte >= 0xae;
}

// Code point of the alphabet -> byte; -1: none. Bytes that would not show stand
// in order from U+0100 on.
std::array<int, 0x144> make_alphabet() {
  std::array<int, 0x144> bytes{};
  bytes.fill(-1);
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[stands_for_itself(byte) ? static_cast<size_t>(byte) : next++] = byte;
  }
  return bytes;
}

}  // namespace

std::string token_bytes(std::string_view token) {
  static const std::array<int, 0x144> kAlphabet = make_alphabet();
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const size_t size = base::code_point_size(rest);
    // All characters of the alphabet have at most two bytes.
    if (size == 0 || size > 2) return std::string(token);
    const auto first = static_cast<uint8_t>(rest[0]);
    const size_t code = size == 1 ? first
                                  : (first & 0x1fU) << 6 |
                                        (static_cast<uint8_t>(rest[1]) & 0x3fU);
    if (code >= kAlphabet.size() || kAlphabet[code] < 0) {
      return std::string(token);
    }
    bytes += static_cast<char>(kAlphabet[code]);
    rest.remove_prefix(size);
  }
  return bytes;
}

BpeModel::BpeModel(const TokenizerParts& parts) {
  byte_ids_.fill(-1);
  for (const auto& [token, id] : parts.vocabulary) {
    vocabulary_.insert_or_assign(token, id);
    const std::string bytes = token_bytes(token);
    if (bytes.size() == 1 && base::code_point_size(token) == token.size()) {
      byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
    }
    if (parts.ignores_merges) whole_words_.insert_or_assign(bytes, id);
  }
  const auto id_of = [&](const std::string& token, size_t merge) {
    const auto id = find(token);
    if (!id) {
      throw FormatError(fmt::format("merge {} needs '{}', which is not a token",
                                    merge, base::as_utf8(token)));
    }
    return *id;
  };
  for (size_t i = 0; i < parts.merges.size(); ++i) {
    const auto& [left, right] = parts.merges[i];
    merges_.insert_or_assign(
        pair_key(id_of(left, i), id_of(right, i)),
        Merge{.rank = static_cast<int64_t>(i), .id = id_of(left + right, i)});
  }
}

std::optional<int64_t> BpeModel::find(const std::string& token) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end()) return {};
  return found->second;
}

const BpeModel::Merge* BpeModel::merge_of(int64_t left, int64_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// Tokens of a word as a chain, and the merges that may come next.
struct BpeModel::Word {
  struct Symbol {
    int64_t id = 0;
    int64_t previous = -1;
    int64_t next = -1;
    bool is_gone = false;  // Part of the one before it.
  };
  // Rank, place of the left token, token that it becomes: smallest first.
  using Candidate = std::tuple<int64_t, int64_t, int64_t>;

  Symbol& at(int64_t place) { return symbols[static_cast<size_t>(place)]; }

  void propose(const BpeModel& model, int64_t place) {
    if (place < 0 || at(place).next < 0) return;
    const Merge* merge = model.merge_of(at(place).id, at(at(place).next).id);
    if (merge != nullptr) candidates.emplace(merge->rank, place, merge->id);
  }

  std::vector<Symbol> symbols = {};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>
      candidates = {};
};

void BpeModel::encode_word(std::string_view word,
                           std::vector<int64_t>& ids) const {
  if (!whole_words_.empty()) {
    const auto whole = whole_words_.find(std::string(word));
    if (whole != whole_words_.end()) return ids.push_back(whole->second);
  }
  Word state;
  for (const char byte : word) {
    const int64_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id < 0) continue;
    const auto place = static_cast<int64_t>(state.symbols.size());
    if (place > 0) state.symbols.back().next = place;
    state.symbols.push_back({.id = id, .previous = place - 1});
  }
  const auto count = static_cast<int64_t>(state.symbols.size());
  for (int64_t i = 0; i + 1 < count; ++i) state.propose(*this, i);
  while (!state.candidates.empty()) {
    const auto [rank, place, id] = state.candidates.top();
    state.candidates.pop();
    Word::Symbol& left = state.at(place);
    if (left.is_gone || left.next < 0) continue;
    Word::Symbol& right = state.at(left.next);
    const Merge* merge = merge_of(left.id, right.id);
    // One of the two was merged with another one since.
    if (merge == nullptr || merge->rank != rank) continue;
    left.id = id;
    left.next = right.next;
    right.is_gone = true;
    if (left.next >= 0) state.at(left.next).previous = place;
    state.propose(*this, left.previous);
    state.propose(*this, place);
  }
  for (const Word::Symbol& symbol : state.symbols) {
    if (!symbol.is_gone) ids.push_back(symbol.id);
  }
}

}  // namespace lockstep::text
