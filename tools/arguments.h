// What the verbs share on their command lines: parsing with one form of error, the flags that name
// a job, lists of ranks, sizes.
//
// Threading: main thread, before anything starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace ghostrank {

using Argv = std::vector<std::string>;  // the whole command line: program, verb, arguments

// False when help was asked for and printed. Throws Error(usage) on anything CLI11 refuses.
bool parse(CLI::App& app, const Argv& argv);

// An option of a command line, as --help shows it. Those without effect and those that are not
// available yet are not among them where --help hides them.
struct OptionFacts {
  std::vector<std::string> names;  // "-s", "--set"; of an argument by its place, its name: "job"
  bool positional = false, required = false, repeatable = false;
  bool takes_value = false, value_optional = false;
  std::string type;                  // "FILE|-", "INT:1..64"
  std::vector<std::string> choices;  // the only values; none: others too
  std::string what, standard, group;
};

// A command: `ghostrank run`.
struct CommandFacts {
  std::string program;             // "ghostrank"
  std::vector<std::string> words;  // "profile", "show"
  std::string what, footer;
  std::vector<OptionFacts> options;
};

// What a verb takes, from the CLI::App with which it would parse its command line. Such a verb
// does nothing before parse() and returns when that is false.
CommandFacts described(int (*play)(const Argv&), const Argv& command);

// Checks of a value, in our words: "'x' is no number from 1 to 64", "'x' is none of a, b".
CLI::Validator between(std::int64_t least, std::int64_t most);
CLI::Validator one_of(const std::vector<std::string>& words);

// --log-level and --log-file (emulator/common/log.h).
struct LogFlags {
  std::string level, file;
};
void add_log_flags(CLI::App& app, LogFlags& flags);
void start_log(const LogFlags& flags, int rank);  // Throws Error(environment)

// A job and what overrides it.
struct JobFlags {
  std::string path;
  std::vector<std::string> overrides;  // "path=value"
  std::optional<std::uint64_t> seed;
};
void add_job_flags(CLI::App& app, JobFlags& flags);
LoadedJob load(const JobFlags& flags);

// --print-config: every key, its value and where it came from, on stdout.
void print_config(const LoadedJob& job);

// A flag of the contract that this version only knows by name: using it is an Error(usage).
void add_reserved_flag(CLI::App& app, const std::string& name);

// --seed: what run.seed takes.
CLI::Option* add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& what);

// An option that reads a size: "8", "4K", "128M", "8GiB".
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& what);

// "0,8-15" -> 0, 8, 9, ... 15; sorted, each once. Throws Error(usage) on a rank beyond `ranks`.
std::vector<Rank> parse_ranks(const std::string& text, int ranks);

}  // namespace ghostrank
