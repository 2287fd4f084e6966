// ghostrank help: a verb's flags, man pages, and shell completion.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "tools/manual/manual.h"
#include "tools/report/files/output_files.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

struct Shell {
  const char* name;
  std::string (*completion)(const std::vector<Command>& commands);
  const char* file;  // below share/
};
constexpr Shell kShells[] = {
    {"bash", bash_completion, "bash-completion/completions/ghostrank"},
    {"zsh", zsh_completion, "zsh/site-functions/_ghostrank"},
    {"fish", fish_completion, "fish/vendor_completions.d/ghostrank.fish"},
};

const Command& find_command(const std::vector<Command>& commands,
                            const std::vector<std::string>& words) {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& c) { return c.facts.words == words; });
  if (found != commands.end()) return *found;
  std::string name;
  for (const std::string& word : words) name += (name.empty() ? "" : " ") + word;
  throw Error("there is no verb '" + name + "'; 'ghostrank --help' lists them");
}

// Writes an installation's layout: FOLDER/man/man1/*.1 and the directories that shells search.
void write_manual(const std::filesystem::path& folder, const std::vector<Command>& commands) {
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    std::error_code failed;
    std::filesystem::create_directories((folder / file).parent_path(), failed);
    write_whole(folder / file, text);
  };
  for (const Command& command : commands)
    write("man/man1/" + page_name(command.facts) + ".1", man_page(command));
  for (const Shell& shell : kShells) write(shell.file, shell.completion(commands));
}

}  // namespace

int verb_help(const Argv& argv) {
  std::vector<std::string> words;
  std::string shell, folder;
  bool man = false;
  CLI::App app("Show the flags of a verb, its man page, or completion for a shell.",
               "ghostrank help");
  app.add_option("verb", words, "a verb, and one of its sub-verbs")->type_name("VERB...");
  app.add_flag("--man", man, "the man page, as roff");
  app.add_option("--completion", shell, "a script that the shell loads")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  app.add_option("--write", folder,
                 "all man pages and completions, as they are installed below share/")
      ->type_name("FOLDER");
  app.footer(
      "Examples:\n"
      "  ghostrank help profile show\n"
      "  ghostrank help --man run | man -l -\n"
      "  source <(ghostrank help --completion bash)");
  if (!parse(app, argv)) return 0;
  if (static_cast<int>(man) + !shell.empty() + !folder.empty() > 1)
    throw Error("--man, --completion and --write are three things; ask for one");
  if (!words.empty() && (!shell.empty() || !folder.empty()))
    throw Error("--completion and --write are of all verbs; name none");
  if (!man && shell.empty() && folder.empty()) {
    Argv asked{argv.front()};
    asked.insert(asked.end(), words.begin(), words.end());
    asked.emplace_back("--help");
    return play_verb(asked);
  }
  const std::vector<Command> commands = all_commands();
  if (man) std::fputs(man_page(find_command(commands, words)).c_str(), stdout);
  for (const Shell& known : kShells)
    if (shell == known.name) std::fputs(known.completion(commands).c_str(), stdout);
  if (!folder.empty()) write_manual(folder, commands);
  return 0;
}

}  // namespace ghostrank
