#include "lockstep/text/added_tokens.h"

#include <algorithm>

#include "lockstep/text/unicode.h"

namespace lockstep::text {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.text.empty()) continue;
    const auto first = static_cast<uint8_t>(token.text.front());
    tokens_[first].push_back(std::move(token));
  }
  for (auto& bucket : tokens_) {
    std::sort(bucket.begin(), bucket.end(),
              [](const AddedToken& a, const AddedToken& b) {
                return a.text.size() > b.text.size();
              });
  }
}

const AddedToken* AddedTokens::token_at(std::string_view text) const {
  for (const AddedToken& token : tokens_[static_cast<uint8_t>(text.front())]) {
    if (text.starts_with(token.text)) return &token;
  }
  return nullptr;
}

std::vector<TextPart> AddedTokens::cut(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t place = 0; place < text.size();) {
    const AddedToken* token = token_at(text.substr(place));
    if (token == nullptr) {
      ++place;
      continue;
    }
    size_t begin = place;
    size_t end = place + token->text.size();
    if (token->takes_left) {
      begin -= trailing_space(text.substr(done, begin - done));
    }
    if (token->takes_right) end += leading_space(text.substr(end));
    if (begin > done)
      parts.push_back({.text = text.substr(done, begin - done)});
    parts.push_back({.text = text.substr(begin, end - begin), .id = token->id});
    done = end;
    place = end;
  }
  if (done < text.size()) parts.push_back({.text = text.substr(done)});
  return parts;
}

}  // namespace lockstep::text
