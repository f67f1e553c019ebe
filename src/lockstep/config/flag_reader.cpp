#include "lockstep/config/flag_reader.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/config/setting.h"
#include "lockstep/error.h"

namespace lockstep::config {
namespace {

enum class Meaning { kSetting, kNegated, kConfig, kPrintConfig, kHelp };

// One word that may follow the dashes.
struct Flag {
  std::string word = {};
  Meaning meaning = Meaning::kSetting;
  size_t setting = 0;
};

std::vector<Flag> all_flags(const Options& options) {
  std::vector<Flag> flags = {{"config", Meaning::kConfig},
                             {"print_config", Meaning::kPrintConfig},
                             {"help", Meaning::kHelp}};
  for (const auto& [word, index] : options.words()) {
    flags.push_back({word, Meaning::kSetting, index});
    if (options.settings()[index].binding.kind == ScalarKind::kBool) {
      flags.push_back({"no_" + word, Meaning::kNegated, index});
    }
  }
  return flags;
}

// A negative number is a value.
bool looks_like_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         !parse_scalar(ScalarKind::kNumber, word);
}

class FlagReader {
 public:
  FlagReader(const Options& options, const std::vector<std::string>& words,
             const std::vector<std::string>& launch_flags)
      : options_(options),
        words_(words),
        launch_flags_(launch_flags),
        flags_(all_flags(options)) {}

  ReadFlags read() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        while (at_ < words_.size())
          result_.positionals.push_back(words_[at_++]);
      } else if (looks_like_flag(word)) {
        read_flag(word);
      } else {
        result_.positionals.push_back(word);
      }
    }
    return std::move(result_);
  }

 private:
  void read_flag(const std::string& word);
  const Flag& find(const std::string& written) const;
  [[noreturn]] void unknown_flag(const std::string& written) const;
  void read_setting(const Flag& flag, const std::optional<std::string>& glued);
  std::vector<std::string> values_of(const Flag& flag,
                                     const std::optional<std::string>& glued);
  SettingValue parse(const Flag& flag,
                     const std::vector<std::string>& values) const;
  SettingValue parse_list(const Flag& flag,
                          const std::vector<std::string>& values) const;
  std::string take_value(const std::string& flag, const std::string& expected);
  bool has_value() const {
    return at_ < words_.size() && !looks_like_flag(words_[at_]);
  }
  const Setting& setting_of(const Flag& flag) const {
    return options_.settings()[flag.setting];
  }

  const Options& options_;
  const std::vector<std::string>& words_;
  const std::vector<std::string>& launch_flags_;
  const std::vector<Flag> flags_;
  size_t at_ = 0;  // The next word to look at.
  ReadFlags result_;
};

void FlagReader::read_flag(const std::string& word) {
  const auto equals = word.find('=');
  const Flag& flag = find(word.substr(0, equals));
  std::optional<std::string> glued;
  if (equals != std::string::npos) glued = word.substr(equals + 1);

  if (flag.meaning == Meaning::kSetting) {
    read_setting(flag, glued);
  } else if (flag.meaning == Meaning::kConfig) {
    result_.config_files.push_back(glued ? *glued
                                         : take_value("config", "a YAML file"));
  } else if (glued) {
    throw ConfigError(
        fmt::format("--{} takes no value, got {}", flag.word, shown(*glued)));
  } else if (flag.meaning == Meaning::kNegated) {
    result_.assignments.push_back(
        {flag.setting, {SettingScalar(false)}, Source::kFlag});
  } else if (flag.meaning == Meaning::kPrintConfig) {
    result_.print_config = true;
  } else {
    result_.help = true;
  }
}

// An exact word, or the beginning of words that all mean the same.
const Flag& FlagReader::find(const std::string& written) const {
  if (written.size() < 3 || !written.starts_with("--")) unknown_flag(written);
  const std::string word = normalized(written.substr(2));
  const Flag* found = nullptr;
  std::set<std::pair<Meaning, size_t>> meanings;
  std::vector<std::string> candidates;
  for (const Flag& flag : flags_) {
    if (flag.word == word) return flag;
    if (!flag.word.starts_with(word)) continue;
    found = &flag;
    meanings.emplace(flag.meaning, flag.setting);
    candidates.push_back("--" + flag.word);
  }
  if (meanings.size() > 1) {
    throw ConfigError(fmt::format("ambiguous flag {}; it could be {}", written,
                                  base::join(candidates, ", ")));
  }
  if (found == nullptr) unknown_flag(written);
  return *found;
}

void FlagReader::unknown_flag(const std::string& written) const {
  std::string word = normalized(written);
  word.erase(0, word.find_first_not_of('_'));
  for (const std::string& flag : launch_flags_) {
    if (normalized(flag) != word) continue;
    throw ConfigError(fmt::format(
        "{} is an option of the launcher: lockstep train RECIPE --{} ...; "
        "processes that torchrun, srun or mpirun started do not have it",
        written, flag));
  }
  std::vector<std::string> known = launch_flags_;
  known.reserve(known.size() + flags_.size());
  for (const Flag& flag : flags_) known.push_back(flag.word);
  std::optional<std::string> near;
  if (word.size() > 1) near = base::nearest(word, known);
  throw ConfigError(fmt::format(
      "unknown flag {}; {}", written,
      near ? fmt::format("did you mean --{}?", *near)
      : written.starts_with("--")
          ? "--help_all lists the flags"
          : "flags start with two dashes, and --help_all lists them"));
}

void FlagReader::read_setting(const Flag& flag,
                              const std::optional<std::string>& glued) {
  SettingValue value = parse(flag, values_of(flag, glued));
  result_.assignments.push_back(
      {flag.setting, std::move(value), Source::kFlag});
}

// The words that belong to the flag; a bool alone means true.
std::vector<std::string> FlagReader::values_of(
    const Flag& flag, const std::optional<std::string>& glued) {
  if (glued) return {*glued};
  const Setting& setting = setting_of(flag);
  const Binding& binding = setting.binding;
  if (binding.kind == ScalarKind::kBool) {
    const bool optional = binding.shape == ValueShape::kOptional;
    const bool given =
        at_ < words_.size() &&
        (parse_bool(words_[at_]) || (optional && is_none(words_[at_])));
    return {given ? words_[at_++] : "true"};
  }
  std::vector<std::string> values = {
      take_value(flag.word, expectation(setting))};
  while (binding.shape == ValueShape::kList && has_value()) {
    values.push_back(words_[at_++]);
  }
  return values;
}

SettingValue FlagReader::parse(const Flag& flag,
                               const std::vector<std::string>& values) const {
  const Setting& setting = setting_of(flag);
  const ValueShape shape = setting.binding.shape;
  if (shape == ValueShape::kList) return parse_list(flag, values);
  const std::string& text = values.front();
  if (shape == ValueShape::kOptional && is_none(text)) return {};
  auto item = parse_item(setting, text);
  if (!item) refuse_text(setting, "--" + flag.word, text);
  return {*std::move(item)};
}

SettingValue FlagReader::parse_list(
    const Flag& flag, const std::vector<std::string>& values) const {
  const Setting& setting = setting_of(flag);
  SettingValue items;
  if (values.size() == 1 && values.front().empty()) return items;
  for (const std::string& value : values) {
    for (const std::string& text : base::split(value, ',')) {
      auto item = parse_item(setting, text);
      if (!item || text.empty()) refuse_text(setting, "--" + flag.word, text);
      items.push_back(*std::move(item));
    }
  }
  return items;
}

std::string FlagReader::take_value(const std::string& flag,
                                   const std::string& expected) {
  if (has_value()) return words_[at_++];
  std::string message =
      fmt::format("--{} needs a value: expected {}", flag, expected);
  if (at_ < words_.size() && words_[at_] != "--") {
    message += fmt::format(
        ", got the flag {} (a value that starts with a dash is written "
        "--{}=...)",
        words_[at_], flag);
  }
  throw ConfigError(message);
}

}  // namespace

ReadFlags read_flags(const Options& options,
                     const std::vector<std::string>& arguments,
                     const std::vector<std::string>& launch_flags) {
  // --help wins over everything else on the line.
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") return {.help = true};
    if (normalized(argument) == "__help_all") {
      return {.help = true, .help_all = true};
    }
  }
  return FlagReader(options, arguments, launch_flags).read();
}

}  // namespace lockstep::config
