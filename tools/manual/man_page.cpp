// See manual.h.
#include <algorithm>

#include "profiles/load/variables.h"
#include "tools/manual/manual.h"

namespace ghostrank {
namespace {

// Text as roff prints it: a hyphen that can be copied, no control line by accident.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string line_of(const CommandFacts& facts) {
  std::string text = facts.program;
  for (const std::string& word : facts.words) text += " " + word;
  return text;
}

std::string synopsis(const Command& command) {
  std::string text = "\\fB" + roff(line_of(command.facts)) + "\\fR";
  if (!command.verbs.empty()) return text + " \\fIVERB\\fR [\\fIARGUMENTS\\fR]";
  for (const OptionFacts& option : command.facts.options) {
    if (!option.positional) continue;
    const std::string name = "\\fI" + roff(option.names.front()) + "\\fR";
    text += option.required ? " " + name : " [" + name + "]";
    if (option.repeatable) text += "...";
  }
  return text + " [\\fIOPTIONS\\fR]";
}

std::string heading(const OptionFacts& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += (text.empty() ? "" : ", ") + std::string(option.positional ? "\\fI" : "\\fB") +
            roff(name) + "\\fR";
  if (option.takes_value && !option.type.empty()) text += " \\fI" + roff(option.type) + "\\fR";
  return text;
}

std::string entry(const OptionFacts& option) {
  std::string text = ".TP\n" + heading(option) + "\n" + roff(option.what);
  if (!option.standard.empty()) text += " (default: " + roff(option.standard) + ")";
  if (option.required) text += " (required)";
  return text + "\n";
}

// Group by group, in the order in which groups first come.
std::string options(const CommandFacts& facts) {
  std::vector<std::string> groups;
  for (const OptionFacts& option : facts.options)
    if (!option.positional && std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  std::string text;
  for (const OptionFacts& option : facts.options)
    if (option.positional) text += (text.empty() ? ".SH ARGUMENTS\n" : "") + entry(option);
  for (const std::string& group : groups) {
    text += ".SH " + roff(group.empty() ? "OPTIONS" : upper(group)) + "\n";
    for (const OptionFacts& option : facts.options)
      if (!option.positional && option.group == group) text += entry(option);
  }
  return text;
}

std::string verbs(const Command& command) {
  std::string text;
  for (const Verb& verb : command.verbs) {
    if (text.empty()) text = ".SH VERBS\n";
    text += ".TP\n\\fB" + roff(verb.name) + "\\fR\n" + roff(verb.synopsis) + "\n";
  }
  return text;
}

std::string environment() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables())
    text += ".TP\n\\fB" + roff(variable.name) + "\\fR\n" + roff(variable.doc) + "\n";
  return text;
}

constexpr const char* kStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nall is well\n"
    ".TP\n1\nthe run failed, missed an \\-\\-expect, was wrong or was not faithful\n"
    ".TP\n2\nthe command line, the job or a profile is wrong\n"
    ".TP\n3\nthe environment is: no provider, no permission, a peer that cannot be reached\n"
    ".TP\n129, 130, 143, 152\nstopped by SIGHUP, SIGINT, SIGTERM or SIGXCPU\n";

std::string see_also(const Command& command) {
  std::string text;
  const auto add = [&](const std::string& page) {
    text += (text.empty() ? ".SH SEE ALSO\n" : ",\n") + ("\\fB" + roff(page) + "\\fR(1)");
  };
  if (!command.facts.words.empty()) add("ghostrank");
  for (const Verb& verb : command.verbs)
    add(page_name(command.facts) + "-" + std::string(verb.name));
  return text + "\n";
}

}  // namespace

std::string man_page(const Command& command) {
  const CommandFacts& facts = command.facts;
  std::string text = ".TH " + upper(roff(page_name(facts))) + " 1 \"\" \"ghostrank " +
                     GHOSTRANK_VERSION + "\" \"User Commands\"\n";
  text += ".SH NAME\n" + roff(page_name(facts)) + " \\- " + roff(command.synopsis) + "\n";
  text += ".SH SYNOPSIS\n" + synopsis(command) + "\n";
  if (!facts.what.empty()) text += ".SH DESCRIPTION\n" + roff(facts.what) + "\n";
  text += verbs(command) + options(facts);
  // Examples and tables: lines stay lines.
  if (!facts.footer.empty()) text += ".SH NOTES\n.nf\n" + roff(facts.footer) + "\n.fi\n";
  if (facts.words.empty()) text += std::string(kStatus) + environment();
  return text + see_also(command);
}

}  // namespace ghostrank
