// See manual.h.
#include "profiles/input/keys.h"
#include "tools/manual/manual.h"

namespace ghostrank {
namespace {

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// As one word of bash or zsh.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> available(std::span<const Verb> verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.emplace_back(verb.name);
  return names;
}

bool takes_file_by_place(const CommandFacts& facts) {
  for (const OptionFacts& option : facts.options)
    if (option.positional && names_file(option)) return true;
  return false;
}

// ---- bash: `words` are what may follow, `files` says that a file may.

std::string bash_case(const Command& command) {
  std::vector<std::string> names = available(command.verbs);
  std::string values;
  for (const OptionFacts& option : command.facts.options) {
    if (option.positional) continue;
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (!option.takes_value || option.value_optional) continue;
    std::string what = ":";  // nothing that can be known
    if (!option.choices.empty())
      what = "words=" + quoted(join(option.choices, " "));
    else if (names_file(option))
      what = "files=yes";
    values += "        " + join(option.names, " | ") + ") " + what + " ;;\n";
  }
  const std::string otherwise = "words=" + quoted(join(names, " ")) +
                                (takes_file_by_place(command.facts) ? " files=yes" : "");
  return "    " + quoted(join(command.facts.words, " ")) + ")\n      case $previous in\n" + values +
         "        *) " + otherwise + " ;;\n      esac\n      ;;\n";
}

// ---- zsh

std::string zsh_text(std::string_view text) { return escaped(text, "[]:\\"); }

std::string zsh_action(const OptionFacts& option) {
  if (!option.choices.empty()) return "(" + join(option.choices, " ") + ")";
  return names_file(option) ? "_files" : " ";
}

std::string zsh_option(const OptionFacts& option) {
  std::string rest = "[" + zsh_text(option.what) + "]";
  if (option.takes_value)
    rest += (option.value_optional ? "::" : ":") +
            zsh_text(option.type.empty() ? "value" : option.type) + ":" + zsh_action(option);
  // One spelling excludes the others, and itself unless it may be repeated.
  const std::string before = option.repeatable ? "*" : "(" + join(option.names, " ") + ")";
  std::string text;
  for (const std::string& name : option.names) {
    const char* value = !option.takes_value ? "" : name.starts_with("--") ? "=" : "+";
    text += " \\\n        " + quoted(before + name + value + rest);
  }
  return text;
}

std::string zsh_case(const Command& command) {
  std::string text = "    " + quoted(join(command.facts.words, " ")) + ")\n";
  if (!command.verbs.empty()) {
    text += "      verbs=(";
    for (const Verb& verb : command.verbs)
      text += "\n        " + quoted(std::string(verb.name) + ":" + escaped(verb.synopsis, "\\"));
    text += ")\n      _describe -t verbs verb verbs\n";
  }
  text += "      _arguments -s";
  for (const OptionFacts& option : command.facts.options)
    if (!option.positional) text += zsh_option(option);
  for (const OptionFacts& option : command.facts.options)
    if (option.positional)
      text += " \\\n        " + quoted((option.repeatable ? "*:" : ":") +
                                       zsh_text(option.names.front()) + ":" + zsh_action(option));
  return text + "\n      ;;\n";
}

// ---- fish

std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "'\\") + "'"; }

// The beginning of a line that holds once the verbs of `command` are typed; if further verbs may
// follow, only before these.
std::string fish_line(const Command& command) {
  std::string test = command.verbs.empty() ? "__ghostrank_at" : "__ghostrank_just";
  for (const std::string& word : command.facts.words) test += " " + word;
  return "complete -c ghostrank -n " + fish_quoted(test);
}

std::string fish_option(const Command& command, const OptionFacts& option) {
  std::string text = fish_line(command);
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.choices.empty())
    text += " -x -a " + fish_quoted(join(option.choices, " "));
  else if (option.takes_value && !option.value_optional)
    text += names_file(option) ? " -r -F" : " -x";
  return text + " -d " + fish_quoted(option.what) + "\n";
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string cases, parents;
  for (const Command& command : commands) {
    cases += bash_case(command);
    if (!command.verbs.empty() && !command.facts.words.empty())
      parents += (parents.empty() ? "" : " | ") + join(command.facts.words, " ");
  }
  return "# Completion of ghostrank for bash; made by 'ghostrank help --completion bash'.\n"
         "_ghostrank() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  local command='' words='' files=''\n"
         "  # --json=FILE is three words.\n"
         "  if [[ $current == = ]]; then\n"
         "    current=''\n"
         "  elif [[ $previous == = ]]; then\n"
         "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n"
         "  if ((COMP_CWORD > 1)); then command=${COMP_WORDS[1]}; fi\n"
         "  case $command in\n"
         "    " +
         parents +
         ") if ((COMP_CWORD > 2)); then command+=\" ${COMP_WORDS[2]}\"; fi ;;\n"
         "  esac\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  if [[ $files ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    local file\n"
         "    while read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -F _ghostrank ghostrank\n";
}

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string cases, parents;
  for (const Command& command : commands) {
    cases += zsh_case(command);
    if (!command.verbs.empty() && !command.facts.words.empty())
      parents += (parents.empty() ? "" : "|") + join(command.facts.words, " ");
  }
  return "#compdef ghostrank\n"
         "# Completion of ghostrank for zsh; made by 'ghostrank help --completion zsh'.\n"
         "_ghostrank() {\n"
         "  local command=''\n"
         "  local -a verbs\n"
         "  if ((CURRENT > 2)); then\n"
         "    command=$words[2]\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "  fi\n"
         "  case $command in\n"
         "    " +
         parents +
         ")\n"
         "      if ((CURRENT > 2)); then\n"
         "        command+=\" $words[2]\"\n"
         "        shift words\n"
         "        ((CURRENT--))\n"
         "      fi\n"
         "      ;;\n"
         "  esac\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _ghostrank ]]; then\n"
         "  _ghostrank \"$@\"\n"
         "else\n"
         "  compdef _ghostrank ghostrank\n"
         "fi\n";
}

std::string fish_completion(const std::vector<Command>& commands) {
  std::string text =
      "# Completion of ghostrank for fish; made by 'ghostrank help --completion fish'.\n"
      "function __ghostrank_at -d 'Whether the command line begins with these verbs'\n"
      "  set -l so_far (commandline -opc)\n"
      "  test (count $so_far) -gt (count $argv); or return 1\n"
      "  for i in (seq (count $argv))\n"
      "    test $so_far[(math $i + 1)] = $argv[$i]; or return 1\n"
      "  end\n"
      "end\n"
      "function __ghostrank_just -d 'Whether it is these verbs so far'\n"
      "  test (count (commandline -opc)) -eq (math (count $argv) + 1); and __ghostrank_at $argv\n"
      "end\n"
      "complete -c ghostrank -f\n";
  for (const Command& command : commands) {
    const std::string line = fish_line(command);
    for (const Verb& verb : command.verbs)
      text += line + " -a " + std::string(verb.name) + " -d " + fish_quoted(verb.synopsis) + "\n";
    for (const OptionFacts& option : command.facts.options)
      if (!option.positional) text += fish_option(command, option);
    if (takes_file_by_place(command.facts)) text += line + " -F\n";
  }
  return text;
}

}  // namespace ghostrank
