// Small text helpers that the standard library lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

std::vector<std::string> split(std::string_view text, char separator);

std::string join(std::span<const std::string> parts,
                 std::string_view separator);

std::string_view trim(std::string_view text);

std::string replace_all(std::string text, std::string_view from,
                        std::string_view to);

// Repeated names get "_2", "_3", ...
void number_equal_names(std::vector<std::string>& names);

// The whole text must be the number; no value otherwise.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// The candidate with the smallest edit distance, or none when nothing is near.
std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string> candidates);

// "0, 2, 5" for error messages.
std::string list_of(std::span<const int> numbers);

// "850 ms", "12.3 s", "4 min 10 s".
std::string duration_text(double seconds);

// "512 B", "25.0 MiB".
std::string bytes_text(int64_t bytes);

}  // namespace lockstep::base
