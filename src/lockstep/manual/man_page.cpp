#include "lockstep/manual/man_page.h"

#include <fmt/format.h>

#include <cctype>

#include "lockstep/base/strings.h"

namespace lockstep::manual {
namespace {

// A line that begins with a dot or a quote would be a macro; a plain - may
// become a hyphen, which cannot be copied into a shell.
std::string roff(const std::string& text) {
  std::string escaped = base::replace_all(text, "\\", "\\e");
  escaped = base::replace_all(std::move(escaped), "-", "\\-");
  escaped = base::replace_all(std::move(escaped), "\n", " ");
  if (escaped.starts_with('.') || escaped.starts_with('\'')) {
    escaped.insert(0, "\\&");
  }
  return escaped;
}

std::string upper(std::string text) {
  for (char& letter : text) {
    letter =
        static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::string header(const Program& program, const std::string& page,
                   const std::string& summary) {
  return fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"Lockstep\"\n.SH NAME\n{} \\- {}\n",
      upper(roff(page)), program.name, program.version, roff(page),
      roff(summary));
}

std::string flag_entry(const Flag& flag) {
  std::string left;
  if (flag.short_name != '\0') left = fmt::format("-{}, ", flag.short_name);
  left += (flag.has_negation ? "--[no_]" : "--") + flag.name;
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(left));
  if (!flag.value.empty()) text += fmt::format(" \\fI{}\\fR", roff(flag.value));
  const std::string notes =
      flag.help_notes.empty() ? "" : fmt::format(" ({})", flag.help_notes);
  return text + "\n" + roff(flag.help + notes) + "\n";
}

std::string sections_text(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) {
    text += fmt::format(".SS {}\n", roff(section.title));
    for (const Flag& flag : section.flags) text += flag_entry(flag);
  }
  return text;
}

std::string term(const std::string& name, const std::string& rest,
                 const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR{}{}\n{}\n", roff(name),
                     rest.empty() ? "" : " ", roff(rest), roff(text));
}

}  // namespace

std::string man_page(const Program& program) {
  std::string text = header(program, program.name, program.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fICOMMAND\\fR ...\n",
                      program.name);
  text += ".SH COMMANDS\n";
  std::string pages;
  for (const Command& command : program.commands) {
    text += term(command.name, command.usage, command.summary);
    if (command.sections.empty()) continue;
    pages += fmt::format("{}\\fB{}\\fR(1)", pages.empty() ? "" : ",\n",
                         roff(program.name + "-" + command.name));
  }
  for (const Command& command : program.commands) {
    if (command.recipes.empty()) continue;
    text += ".SH RECIPES\n";
    for (const RecipeFlags& recipe : command.recipes) {
      text += term(recipe.name, "", recipe.summary);
    }
    break;
  }
  return text + ".SH SEE ALSO\n" + pages + "\n";
}

std::string man_page(const Program& program, const Command& command) {
  const std::string page = program.name + "-" + command.name;
  std::string text = header(program, page, command.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fB{} {}\\fR {}\n", program.name,
                      command.name, roff(command.usage));
  if (!command.recipes.empty()) {
    text += ".SH RECIPES\n";
    for (const RecipeFlags& recipe : command.recipes) {
      text += term(recipe.name, "", recipe.summary);
    }
    text += fmt::format(
        ".PP\nDefaults of the flags that all recipes share depend on the "
        "recipe:\n\\fB{} {}\\fR \\fIRECIPE\\fR \\fB\\-\\-help_all\\fR shows "
        "them.\n",
        program.name, command.name);
  }
  text += ".SH OPTIONS\n" + sections_text(command.sections);
  for (const RecipeFlags& recipe : command.recipes) {
    if (recipe.sections.empty()) continue;
    text += fmt::format(".SH FLAGS OF {}\n", upper(roff(recipe.name)));
    text += sections_text(recipe.sections);
  }
  return text + fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", program.name);
}

}  // namespace lockstep::manual
