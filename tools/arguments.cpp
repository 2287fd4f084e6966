// See arguments.h.
#include "tools/arguments.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <iterator>
#include <sstream>

#include <CLI/CLI.hpp>

#include "emulator/common/log.h"
#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "profiles/input/quantity.h"
#include "profiles/load/config.h"
#include "profiles/load/load.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// In the order of LogLevel.
constexpr std::array<std::string_view, 6> kLogLevels{"trace", "debug", "info",
                                                     "warn",  "error", "off"};

int parse_rank(const std::string& text, const std::string& whole, int ranks) {
  const std::optional<std::int64_t> rank = parse_integer(text);
  if (!rank || *rank < 0) {
    throw Error("'" + whole + "' is no list of ranks; write for example 0,8-15");
  }
  if (*rank >= ranks) {
    throw Error("there is no rank " + text + ": the job has ranks 0 to " +
                std::to_string(ranks - 1));
  }
  return static_cast<int>(*rank);
}

// Names of our validators; `command_facts` finds them by these.
constexpr const char* kOneOf = "one of";

// The option whose value CLI11 could not convert, or null. CLI11 calls the options' callbacks in
// order and stops at the failure, so it is the last one called.
const CLI::Option* unconverted(const CLI::App& app) {
  const CLI::Option* last = nullptr;
  for (const CLI::Option* option : app.get_options())
    if (option->get_callback_run() && option->count() > 0) last = option;
  return last;
}

const CLI::Option* given_too_often(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::size_t most = std::max(0, option->get_items_expected_max());
    if (most > 0 && option->count() > most) return option;
  }
  return nullptr;
}

// The text of an error: ours where CLI11's would leave the reader guessing. CLI11's texts are
// shown, never parsed.
std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const std::vector<std::string> extras = app.remaining();
    return (extras.size() == 1 ? "the following argument was not expected: "
                               : "the following arguments were not expected: ") +
           join(extras, " ");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    if (const CLI::Option* option = given_too_often(app))
      return option->get_name() + " is given more than once; give it once";
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    if (const CLI::Option* option = unconverted(app))
      return option->get_name() + ": '" + join(option->results(), " ") + "' is not what it takes";
  }
  std::string text = error.what();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

OptionFacts option_facts(CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  facts.positional = facts.names.empty();
  if (facts.positional) facts.names.push_back(option.get_name(true));
  facts.takes_value = option.get_items_expected_max() > 0;
  facts.value_optional = facts.takes_value && option.get_expected_min() == 0;
  facts.required = option.get_required();
  facts.repeatable = option.get_items_expected_max() > 1;
  if (facts.takes_value) facts.type = option.get_type_name();
  facts.what = option.get_description();
  facts.standard = option.get_default_str();
  facts.group = option.get_group();
  for (int i = 0;; ++i) {
    try {
      const CLI::Validator& validator = *option.get_validator(i);
      if (validator.get_name() != kOneOf) continue;
      std::istringstream words(validator.get_description());  // written by one_of()
      words.ignore();
      for (std::string word; std::getline(words, word, ',');)
        facts.choices.push_back(word.substr(0, word.find('}')));
    } catch (const CLI::OptionNotFound&) {
      return facts;
    }
  }
}

CommandFacts command_facts(CLI::App& app) {
  CommandFacts facts;
  std::istringstream words(app.get_name());
  words >> facts.program;
  for (std::string word; words >> word;) facts.words.push_back(word);
  facts.what = app.get_description();
  facts.footer = app.get_footer();
  for (CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) facts.options.push_back(option_facts(*option));
  return facts;
}

// Receives the description of a command line (see described()); null: command lines are parsed.
CommandFacts* wanted_facts = nullptr;

// A flag as messages name it, and as the command line that was parsed last gave it.
struct TypedName {
  std::string named, typed;
};
std::vector<TypedName> typed_names;

bool is_of_a_flag(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// `text` with `from` replaced wherever it stands as a whole flag.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    const std::size_t end = at + from.size();
    const bool whole = (at == 0 || !is_of_a_flag(text[at - 1])) &&
                       (end == text.size() || !is_of_a_flag(text[end]));
    if (whole) text.replace(at, from.size(), to);
    at += whole ? to.size() : from.size();
  }
  return text;
}

bool is_given(const Argv& argv, const std::string& flag) {
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& argument) {
    const bool is_short = !flag.starts_with("--");  // its value may follow at once
    return argument == flag || argument.starts_with(is_short ? flag : flag + "=");
  });
}

void remember_typed_names(const CLI::App& app, const Argv& argv) {
  typed_names.clear();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_snames().empty()) continue;
    const std::string shorter = "-" + option->get_snames()[0], both = option->get_name(false, true);
    for (const std::string& name : option->get_lnames()) {
      const std::string longer = "--" + name;
      if (is_given(argv, longer)) typed_names.push_back({both, longer});
    }
    if (!is_given(argv, shorter)) continue;
    typed_names.push_back({both, shorter});
    for (const std::string& name : option->get_lnames())
      typed_names.push_back({"--" + name, shorter});
  }
}

// Refuses empty values: an unset shell variable gives one. Only a command that is handed on to
// another program may have empty words, after its first.
void check_nothing_is_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_expected_min() == 0) continue;
    const bool command = option->get_name() == "command";
    for (const std::string& value : option->results()) {
      if (value.empty()) throw Error(option->get_name() + " is empty; give it a value");
      if (command) break;
    }
  }
}

}  // namespace

std::string as_typed(const std::string& message) {
  std::string text = message;
  for (const TypedName& name : typed_names) text = replaced(text, name.named, name.typed);
  return text;
}

bool parse(CLI::App& app, const Argv& argv) {
  app.get_formatter()->column_width(34);
  if (wanted_facts != nullptr) {
    *wanted_facts = command_facts(app);
    return false;
  }
  std::vector<std::string> reversed(argv.begin() + std::min<std::ptrdiff_t>(2, std::ssize(argv)),
                                    argv.end());
  remember_typed_names(app, reversed);
  std::reverse(reversed.begin(), reversed.end());  // CLI11 wants the last argument first
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw Error(refusal(app, error) + "; '" + app.get_name() + " --help' shows the flags");
  }
  check_nothing_is_empty(app);
  return true;
}

CommandFacts described(int (*play)(const Argv&), const Argv& command) {
  struct Describing {
    explicit Describing(CommandFacts& facts) { wanted_facts = &facts; }
    ~Describing() { wanted_facts = nullptr; }
  };
  CommandFacts facts;
  const Describing these(facts);
  play(command);  // returns from parse(), as for --help
  return facts;
}

CLI::Validator between(std::int64_t least, std::int64_t most) {
  const std::string from = std::to_string(least), to = std::to_string(most);
  return {[least, most, from, to](std::string& text) -> std::string {
            const std::optional<std::int64_t> number = parse_integer(text);
            if (number && *number >= least && *number <= most) return "";
            return "'" + text + "' is no number from " + from + " to " + to;
          },
          from + ".." + to, "between"};
}

CLI::Validator real_between(double least, double most) {
  const std::string from = number_text(least), to = number_text(most);
  return {[least, most, from, to](std::string& text) -> std::string {
            const std::optional<double> number = parse_number(text);
            if (number && *number >= least && *number <= most) return "";
            return "'" + text + "' is no number from " + from + " to " + to;
          },
          from + ".." + to, "between"};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& text) -> std::string {
            if (std::find(words.begin(), words.end(), text) != words.end()) return "";
            return "'" + text + "' is none of " + join(words, ", ");
          },
          "{" + join(words, ",") + "}", kOneOf};
}

void add_log_flags(CLI::App& app, LogFlags& flags) {
  app.add_option("--log-level", flags.level,
                 "say on stderr what goes on: debug says most; default off, with --log-file info")
      ->check(one_of({kLogLevels.begin(), kLogLevels.end()}))
      ->type_name("LEVEL")
      ->envname("GHOSTRANK_LOG_LEVEL")
      ->group("Output");
  app.add_option("--log-file", flags.file,
                 "write that to a file; processes other than 0 write to FILE.RANK")
      ->type_name("FILE")
      ->group("Output");
}

void start_log(const LogFlags& flags, int rank) {
  const std::string level = !flags.level.empty() ? flags.level
                            : flags.file.empty() ? "off"
                                                 : "info";
  const auto* const found = std::find(kLogLevels.begin(), kLogLevels.end(), level);
  const std::string beside = rank == 0 || flags.file.empty() ? "" : "." + std::to_string(rank);
  start_log(static_cast<LogLevel>(found - kLogLevels.begin()), flags.file + beside, rank);
}

void add_job_flags(CLI::App& app, JobFlags& flags) {
  app.add_option("job", flags.path,
                 "job file (YAML), or a result whose job is taken again; - is stdin")
      ->required()
      ->type_name("JOB.yaml");
  app.add_option("-s,--set", flags.overrides, "override any key: -s cluster.nodes=4; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Job");
  add_seed(app, flags.seed, "seed of all random draws (run.seed)")->group("Job");
}

CLI::Option* add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& what) {
  constexpr std::int64_t kGreatest = (std::int64_t{1} << 53) - 1;  // like run.seed
  return app
      .add_option_function<std::string>(
          "--seed",
          [&seed](const std::string& text) {
            const std::optional<std::int64_t> number = parse_integer(text);
            if (!number || *number < 0 || *number > kGreatest) {
              throw Error("--seed: '" + text + "' is no seed; write an integer from 0 to " +
                          std::to_string(kGreatest));
            }
            seed = *number;
          },
          what)
      ->type_name("N");
}

void check_seed(const std::optional<std::uint64_t>& seed,
                const std::vector<std::string>& overrides) {
  if (seed && gives(overrides, "run.seed"))
    throw Error("--seed and -s run.seed both say the seed; give one of them");
}

LoadedJob load(const JobFlags& flags) {
  check_seed(flags.seed, flags.overrides);
  std::vector<std::string> overrides = flags.overrides;
  if (flags.seed) overrides.push_back("run.seed=" + std::to_string(*flags.seed));
  LoadedJob job = load_job(flags.path, overrides);
  if (flags.seed) {
    for (ConfigEntry& entry : job.entries) {
      if (entry.path == "run.seed") entry.origin = "--seed";
    }
  }
  return job;
}

void refuse_beside(const CLI::App& app, const std::string& flag,
                   const std::vector<std::string>& others) {
  std::vector<std::string> given;
  std::copy_if(others.begin(), others.end(), std::back_inserter(given),
               [&](const std::string& other) { return app.count(other) > 0; });
  if (app.count(flag) > 0 && !given.empty())
    throw Error(flag + " plays nothing; leave out " + join(given, ", "));
}

void print_config(const LoadedJob& job) {
  // Columns; longer entries do not move the origins of the others.
  constexpr std::size_t kWidest = 60;
  std::size_t width = 0;
  std::vector<std::string> lines;
  for (const ConfigEntry& entry : job.entries) {
    lines.push_back(entry.path + " = " + entry.value);
    if (lines.back().size() <= kWidest) width = std::max(width, lines.back().size());
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].resize(std::max(lines[i].size(), width), ' ');
    std::printf("%s   # %s\n", lines[i].c_str(), job.entries[i].origin.c_str());
  }
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& what) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto size = parse_size(text);
            if (!size) throw Error(name + ": '" + text + "' is no size; write 8, 4K, 128M or 8GiB");
            value = *size;
          },
          what)
      ->type_name("SIZE");
}

Environment environment_of(const std::vector<std::string>& given) {
  Environment environment;
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw Error("--env " + text + " has no value; write NAME=VALUE, as in --env NCCL_ALGO=Ring");
    const std::string name = text.substr(0, equals);
    if (!environment.emplace(name, text.substr(equals + 1)).second)
      throw Error("--env " + name + " is given twice; leave one out");
  }
  return environment;
}

std::vector<WorldRank> parse_ranks(const std::string& text, int ranks) {
  std::vector<WorldRank> list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const int first = parse_rank(part.substr(0, dash), text, ranks);
    const int last =
        dash == std::string::npos ? first : parse_rank(part.substr(dash + 1), text, ranks);
    for (int rank = first; rank <= last; ++rank) list.emplace_back(rank);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.empty()) throw Error("'" + text + "' names no rank; write for example 0,8-15");
  return list;
}

}  // namespace ghostrank
