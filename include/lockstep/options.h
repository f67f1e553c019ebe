// Describes settings once, for flags, YAML, help and documents.
//
// Not thread-safe. A mistake in the description itself (a name used twice, a
// default outside its own limits) throws ConfigError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "lockstep/export.h"

namespace lockstep {

// Types of a setting. All code between the user's text and the variable works
// on a list of scalars: a plain variable has one, an optional none or one, a
// vector any number.
enum class ScalarKind { kBool, kInteger, kNumber, kText };
using SettingScalar = std::variant<bool, int64_t, double, std::string>;
using SettingValue = std::vector<SettingScalar>;

enum class ValueShape { kOne, kOptional, kList };

// Reads and writes one variable of the program.
struct Binding {
  ScalarKind kind = ScalarKind::kText;
  ValueShape shape = ValueShape::kOne;
  std::function<SettingValue()> read = {};
  std::function<void(const SettingValue&)> write = {};
};

namespace internal {

template <typename T>
constexpr bool kIsScalar =
    std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, double> || std::is_same_v<T, std::string>;

template <typename T>
constexpr ScalarKind kKindOf =
    std::is_same_v<T, bool>      ? ScalarKind::kBool
    : std::is_same_v<T, int64_t> ? ScalarKind::kInteger
    : std::is_same_v<T, double>  ? ScalarKind::kNumber
                                 : ScalarKind::kText;

template <typename T>
struct Bind {
  static_assert(kIsScalar<T>,
                "a setting is a bool, int64_t, double or std::string, a "
                "std::optional of those, or a std::vector of the last three");
  static Binding to(T& target) {
    return {kKindOf<T>, ValueShape::kOne,
            [&target] { return SettingValue{SettingScalar(target)}; },
            [&target](const SettingValue& value) {
              target = std::get<T>(value.front());
            }};
  }
};

template <typename T>
struct Bind<std::optional<T>> {
  static_assert(kIsScalar<T>, "an optional of bool, int64_t, double or text");
  static Binding to(std::optional<T>& target) {
    return {kKindOf<T>, ValueShape::kOptional,
            [&target] {
              return target ? SettingValue{SettingScalar(*target)}
                            : SettingValue{};
            },
            [&target](const SettingValue& value) {
              target.reset();
              if (!value.empty()) target = std::get<T>(value.front());
            }};
  }
};

template <typename T>
struct Bind<std::vector<T>> {
  static_assert(kIsScalar<T> && !std::is_same_v<T, bool>,
                "a vector of int64_t, double or text");
  static Binding to(std::vector<T>& target) {
    return {kKindOf<T>, ValueShape::kList,
            [&target] { return SettingValue(target.begin(), target.end()); },
            [&target](const SettingValue& value) {
              target.clear();
              for (const SettingScalar& item : value) {
                target.push_back(std::get<T>(item));
              }
            }};
  }
};

}  // namespace internal

// The target must outlive the binding.
template <typename T>
Binding bind_value(T& target) {
  return internal::Bind<T>::to(target);
}

struct OptionDetails {
  // Other flag names of the same meaning, without dashes.
  std::vector<std::string> aliases = {};
  // YAML path when it is not the name: "data.batch_size".
  std::string key = {};
  // Allowed values of a text or integer (or of each item of a list).
  std::vector<std::string> choices = {};
  std::optional<double> minimum = {};  // For numbers.
  std::optional<double> maximum = {};
  std::string group = {};  // Heading in help and docs.
  // Text for help when the default is computed ("all GPUs").
  std::string shown_default = {};
  // Applies to one start of the program only: to_yaml() omits it.
  bool once = false;
  // The setting that a rule computes this one from. Unless the user gave it,
  // to_yaml() leaves it out: whoever reads the file computes it again. It is
  // written while the other one is null or false.
  std::string follows = {};
};

// Source of a setting's value.
enum class Source { kDefault, kFile, kFlag };

struct LOCKSTEP_EXPORT Setting {
  std::string name = {};
  std::string help = {};
  OptionDetails details = {};
  Binding binding = {};
  SettingValue default_value = {};
  Source source = Source::kDefault;

  // The YAML path.
  const std::string& key() const;
};

// A checked value to assign to the variable of a setting.
struct Assignment {
  size_t setting = 0;  // Index into Options::settings().
  SettingValue value = {};
  Source source = Source::kDefault;
};

// Settings, each bound to a variable that outlives this object. Values at the
// time of binding are the defaults.
class LOCKSTEP_EXPORT Options {
 public:
  // T: bool, int64_t, double, std::string, std::optional of those,
  // std::vector<int64_t|double|std::string>. Names consist of letters, digits,
  // '_' and '-'; "config", "help", "help_all" and "print_config" are taken.
  template <typename T>
  void add(const std::string& name, T& target, const std::string& help,
           const OptionDetails& details = {}) {
    add_setting({.name = name,
                 .help = help,
                 .details = details,
                 .binding = bind_value(target)});
  }

  // The following three take the name or an alias of an added setting.
  // Adding a name that the setting already has does nothing.
  void add_alias(const std::string& name, const std::string& alias);
  // The YAML path: "data.batch_size".
  void set_key(const std::string& name, const std::string& key);
  void set_group(const std::string& name, const std::string& group);

  // What help and documents show as the default, where that depends on other
  // settings. The variable's current value is the default itself.
  void show_default(const std::string& name, const std::string& text);

  // Back to the default, as if it had not been given.
  void reset(std::string_view name);

  // The variables' current values become the defaults, after a program changed
  // them; help then shows the value in place of shown_default. Settings that a
  // file or flag gave keep their default.
  void refresh_defaults();

  // By name or alias; '-' equals '_'. All but has() throw ConfigError for a
  // name that was never added.
  bool has(std::string_view name) const;
  Source source(std::string_view name) const;
  bool was_given(std::string_view name) const;          // Not kDefault.
  std::string value_text(std::string_view name) const;  // As YAML.

  // In the order of add().
  const std::vector<Setting>& settings() const { return settings_; }
  // Names and aliases, in the normalized spelling, with the setting's index.
  const std::map<std::string, size_t, std::less<>>& words() const {
    return words_;
  }

  // Writes the variables, in order. The values must have been checked.
  void assign(std::span<const Assignment> assignments);

 private:
  void add_setting(Setting setting);
  size_t index_of(std::string_view name) const;
  void claim_word(size_t setting, const std::string& word);
  void check_key(size_t setting) const;
  void take_default(Setting& setting) const;

  std::vector<Setting> settings_;
  std::map<std::string, size_t, std::less<>> words_;
};

}  // namespace lockstep
