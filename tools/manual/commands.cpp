// See manual.h.
#include "tools/manual/manual.h"

namespace ghostrank {
namespace {

void add(std::vector<Command>& commands, std::span<const Verb> verbs,
         const std::vector<std::string>& before) {
  for (const Verb& verb : verbs) {
    Command command;
    if (verb.verbs.empty())
      command.facts = described(verb.play, {"ghostrank", std::string(verb.name)});
    command.facts.program = "ghostrank";
    command.facts.words = before;
    command.facts.words.emplace_back(verb.name);
    command.synopsis = verb.synopsis;
    command.verbs = verb.verbs;
    const std::vector<std::string> words = command.facts.words;
    commands.push_back(std::move(command));
    add(commands, verb.verbs, words);
  }
}

}  // namespace

std::vector<Command> all_commands() {
  Command program;
  program.facts.program = "ghostrank";
  program.facts.what = "Emulate the training of a large model on a few ordinary servers.";
  program.synopsis = "emulate the training of a large model on a few ordinary servers";
  program.verbs = all_verbs();
  OptionFacts help, version;
  help.names = {"-h", "--help"};
  help.what = "the verbs";
  version.names = {"-V", "--version"};
  version.what = "which version, built from which commit by which compiler";
  program.facts.options = {help, version};
  std::vector<Command> commands{std::move(program)};
  add(commands, all_verbs(), {});
  return commands;
}

std::string page_name(const CommandFacts& facts) {
  std::string name = facts.program;
  for (const std::string& word : facts.words) name += "-" + word;
  return name;
}

bool names_file(const OptionFacts& option) {
  const std::string& type = option.type;
  if (!option.takes_value || type.find('=') != std::string::npos) return false;
  return type.find("FILE") != std::string::npos || type == "PATH" ||
         type.find(".yaml") != std::string::npos || type.find(".json") != std::string::npos;
}

}  // namespace ghostrank
