// Man pages and completion hold every option that a verb's --help shows. The tests read the text
// that --help prints, because other code than that of pages and scripts writes it.
#include "tools/manual/manual.h"

#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::contents;
using test::put;
using test::Scratch;
using testing::HasSubstr;
using Words = std::set<std::string>;
using test::Outcome;
using test::shell;

bool is_there(const std::string& program) { return shell("command -v " + program).status == 0; }

std::string line_of(const Command& command) {
  std::string text;
  for (const std::string& word : command.facts.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "  -s,--set PATH=VALUE ..." -> -s, --set
Words options_in_help(const Command& command) {
  Words names;
  std::istringstream lines(shell(GHOSTRANK_BINARY " " + line_of(command) + " --help").text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream columns(line);
    std::string list;
    columns >> list;
    std::istringstream parts(list);
    for (std::string name; std::getline(parts, name, ',');) names.insert(name);
  }
  return names;
}

std::vector<Command> with_options() {
  std::vector<Command> leaves;
  for (Command& command : all_commands())
    if (command.verbs.empty()) leaves.push_back(std::move(command));
  return leaves;
}

std::string plain(std::string roff) {
  for (const char* gone : {"\\fB", "\\fI", "\\fR", "\\&"})
    for (std::size_t at; (at = roff.find(gone)) != std::string::npos;)
      roff.erase(at, 3 - (gone[1] == '&'));
  for (std::size_t at; (at = roff.find("\\-")) != std::string::npos;) roff.erase(at, 1);
  return roff;
}

// Names at the heads of a page's entries: the line after each .TP.
Words options_in_page(const std::string& page) {
  Words names;
  std::istringstream lines(plain(page));
  for (std::string line; std::getline(lines, line);) {
    if (line != ".TP" || !std::getline(lines, line)) continue;
    std::istringstream words(line);
    for (std::string word; words >> word && word.starts_with("-");)
      names.insert(word.substr(0, word.find(',')));
  }
  return names;
}

TEST(Manual, KnowsEveryVerbWithItsOwn) {
  Words lines;
  for (const Command& command : all_commands()) lines.insert(line_of(command));
  for (const Verb& verb : all_verbs())
    EXPECT_TRUE(lines.contains(std::string(verb.name))) << verb.name;
  EXPECT_TRUE(lines.contains("profile show"));
  EXPECT_TRUE(lines.contains("switch counters"));
  EXPECT_TRUE(lines.contains("profile export"));
}

TEST(Manual, PagesHaveEveryOptionOfEveryVerb) {
  for (const Command& command : with_options()) {
    const Words shown = options_in_help(command);
    ASSERT_TRUE(shown.contains("--help")) << line_of(command);
    EXPECT_EQ(options_in_page(man_page(command)), shown) << line_of(command);
  }
}

TEST(Manual, PagesOfVerbsWithVerbsNameThem) {
  for (const Command& command : all_commands())
    for (const Verb& verb : command.verbs) {
      const std::string page = plain(man_page(command));
      EXPECT_THAT(page, HasSubstr(".TP\n" + std::string(verb.name) + "\n"));
      EXPECT_THAT(page, HasSubstr(page_name(command.facts) + "-" + std::string(verb.name) + "(1)"));
    }
}

TEST(Manual, PagesAreCleanRoff) {
  if (!is_there("groff")) GTEST_SKIP() << "no groff here";
  const Scratch scratch;
  for (const Command& command : all_commands()) {
    put(scratch / "page.1", man_page(command));
    const Outcome ended = shell("groff -man -ww -z " + (scratch / "page.1"));
    EXPECT_EQ(ended.text, "") << line_of(command);
  }
}

TEST(Manual, BashOffersEveryOptionOfEveryVerb) {
  const Scratch scratch;  // without files that could be offered, too
  put(scratch / ".script", bash_completion(all_commands()));
  const auto offered = [&](const std::string& words) {
    const Outcome ended =
        shell("cd " + (scratch / "") + " && bash -c '. ./.script; COMP_WORDS=(ghostrank " + words +
              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ghostrank; "
              "printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
    EXPECT_EQ(ended.status, 0) << ended.text;
    Words names;
    std::istringstream lines(ended.text);
    for (std::string name; lines >> name;) names.insert(name);
    return names;
  };
  for (const Command& command : with_options()) {
    Words names = options_in_help(command);
    EXPECT_EQ(offered(line_of(command) + " -"), names) << line_of(command);
  }
  EXPECT_TRUE(offered("\"\"").contains("run"));
  EXPECT_EQ(offered("profile s"), Words{"show"});
  EXPECT_EQ(offered("run --log-level d"), Words{"debug"});
  EXPECT_EQ(offered("run --log-level = d"), Words{"debug"});
  put(scratch / "job.yaml", "");
  EXPECT_EQ(offered("run j"), Words{"job.yaml"});
  EXPECT_EQ(offered("run --json j"), Words{"job.yaml"});
  EXPECT_EQ(offered("run --seed \"\""), Words{});
}

// The lines of a script that are about one command.
std::string part_of(const std::string& script, const std::string& begin, const std::string& end) {
  const std::size_t at = script.find(begin);
  return at == std::string::npos ? "" : script.substr(at, script.find(end, at) - at);
}

TEST(Manual, ZshAndFishKnowEveryOptionOfEveryVerb) {
  const std::vector<Command> commands = all_commands();
  const std::string zsh = zsh_completion(commands), fish = fish_completion(commands);
  for (const Command& command : with_options()) {
    const std::string in_zsh = part_of(zsh, "    '" + line_of(command) + "')", ";;");
    std::string in_fish;
    std::istringstream lines(fish);
    for (std::string line; std::getline(lines, line);)
      if (line.find("'__ghostrank_at " + line_of(command) + "'") != std::string::npos)
        in_fish += line + " \n";
    for (const std::string& name : options_in_help(command)) {
      const bool is_long = name.starts_with("--");
      const std::string form = "[)*]" + name + "[=+]?\\[";
      EXPECT_TRUE(std::regex_search(in_zsh, std::regex(form))) << line_of(command) << ' ' << name;
      EXPECT_THAT(in_fish,
                  HasSubstr((is_long ? " -l " + name.substr(2) : " -s " + name.substr(1)) + " "))
          << line_of(command);
    }
  }
}

TEST(Manual, FishOffersEveryOptionOfEveryVerb) {
  if (!is_there("fish")) GTEST_SKIP() << "no fish here";
  const Scratch scratch;
  put(scratch / "script", fish_completion(all_commands()));
  const auto offered = [&](const std::string& line) {
    const Outcome ended = shell("fish -N -c 'source " + (scratch / "script") +
                                "; complete -C \"ghostrank " + line + "\"'");
    EXPECT_EQ(ended.status, 0) << ended.text;
    Words names;
    std::istringstream lines(ended.text);  // name, tab, description
    for (std::string one; std::getline(lines, one);) names.insert(one.substr(0, one.find('\t')));
    return names;
  };
  for (const Command& command : with_options()) {
    Words names = offered(line_of(command) + " -");
    names.merge(offered(line_of(command) + " --"));
    EXPECT_EQ(names, options_in_help(command)) << line_of(command);
  }
  EXPECT_EQ(offered("profile s"), Words{"show"});
  EXPECT_EQ(offered("profile show s"), Words{});
  EXPECT_EQ(offered("run --log-level d"), Words{"debug"});
}

TEST(Manual, ScriptsAreWellFormed) {
  const Scratch scratch;
  const std::vector<Command> commands = all_commands();
  put(scratch / "bash", bash_completion(commands));
  put(scratch / "zsh", zsh_completion(commands));
  put(scratch / "fish", fish_completion(commands));
  for (const std::string name : {"bash", "zsh", "fish"}) {
    if (!is_there(name)) continue;
    const Outcome ended = shell(name + " -n " + (scratch / name));
    EXPECT_EQ(ended.status, 0) << ended.text;
  }
}

TEST(Manual, IsWrittenAsItIsInstalled) {
  const Scratch scratch;
  const Outcome ended = shell(GHOSTRANK_BINARY " help --write " + (scratch / "share"));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const std::vector<Command> commands = all_commands();
  for (const Command& command : commands)
    EXPECT_EQ(contents(scratch / ("share/man/man1/" + page_name(command.facts) + ".1")),
              man_page(command));
  EXPECT_EQ(contents(scratch / "share/bash-completion/completions/ghostrank"),
            bash_completion(commands));
  EXPECT_EQ(contents(scratch / "share/zsh/site-functions/_ghostrank"), zsh_completion(commands));
  EXPECT_EQ(contents(scratch / "share/fish/vendor_completions.d/ghostrank.fish"),
            fish_completion(commands));
}

}  // namespace
}  // namespace ghostrank
