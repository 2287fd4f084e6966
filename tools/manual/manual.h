// Man pages and completion of shells, written from what the verbs themselves accept: the tables of
// CLI11, as `described` (arguments.h) reads them. Nothing here is kept up to date by hand.
//
// Threading: main thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/verbs.h"

namespace ghostrank {

// A command with its own verbs: `ghostrank`, `ghostrank run`, `ghostrank profile show`.
struct Command {
  CommandFacts facts;
  std::string synopsis;
  std::span<const Verb> verbs;
};

// The program itself first, then every verb that is available, those of verbs after them.
std::vector<Command> all_commands();

// "ghostrank-profile-show": of its man page.
std::string page_name(const CommandFacts& facts);

// The man page, of section 1, as roff for man(7).
std::string man_page(const Command& command);

// Scripts that the shells load for the word `ghostrank`.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

// Whether a value of it is a file of this machine.
bool names_file(const OptionFacts& option);

}  // namespace ghostrank
