// What the verbs' command lines share: parsing with one form of error, the flags that name a job,
// lists of ranks, sizes.
//
// Threading: main thread, before anything starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace ghostrank {

using Argv = std::vector<std::string>;  // the whole command line: program, verb, arguments

// False if help was asked for and printed. Throws Error(usage) on anything that CLI11 refuses.
bool parse(CLI::App& app, const Argv& argv);

// `message` with each flag named as the command line that was parsed last gave it: "-b" where
// "--minbytes" or "-b,--minbytes" stands and -b was typed.
std::string as_typed(const std::string& message);
// An option of a command line, as --help shows it; options that --help hides are left out.
struct OptionFacts {
  std::vector<std::string> names;  // "-s", "--set"; of a positional argument: "job"
  bool positional = false, required = false, repeatable = false;
  bool takes_value = false, value_optional = false;
  std::string type;                  // "FILE|-", "INT:1..64"
  std::vector<std::string> choices;  // the allowed values; empty: any
  std::string what, standard, group;
};

// A command: `ghostrank run`.
struct CommandFacts {
  std::string program;             // "ghostrank"
  std::vector<std::string> words;  // "profile", "show"
  std::string what, footer;
  std::vector<OptionFacts> options;
};

// The options of a verb, taken from the CLI::App that would parse its command line. The verb must
// do nothing before parse(), and return if that is false.
CommandFacts described(int (*play)(const Argv&), const Argv& command);

// Validators with our texts: "'x' is no number from 1 to 64", "'x' is none of a, b".
CLI::Validator between(std::int64_t least, std::int64_t most);
CLI::Validator real_between(double least, double most);  // neither nan nor infinity is
CLI::Validator one_of(const std::vector<std::string>& words);

// --log-level and --log-file (emulator/common/log.h).
struct LogFlags {
  std::string level, file;
};
void add_log_flags(CLI::App& app, LogFlags& flags);
void start_log(const LogFlags& flags, int rank);  // throws Error(environment)

// A job and its overrides.
struct JobFlags {
  std::string path;
  std::vector<std::string> overrides;  // "path=value"
  std::optional<std::uint64_t> seed;
};
void add_job_flags(CLI::App& app, JobFlags& flags);
LoadedJob load(const JobFlags& flags);

// Throws Error(usage) if the command line that was parsed has `flag`, which only prints what would
// be played, and any of `others`, which would have no effect.
void refuse_beside(const CLI::App& app, const std::string& flag,
                   const std::vector<std::string>& others);

// --print-config: prints every key, its value and its origin to stdout.
void print_config(const LoadedJob& job);

// --seed, with the range of run.seed.
CLI::Option* add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& what);

// Throws Error(usage) if --seed and -s both say the seed, of which only one could count.
void check_seed(const std::optional<std::uint64_t>& seed,
                const std::vector<std::string>& overrides);

// An option that reads a size: "8", "4K", "128M", "8GiB".
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& value,
                      const std::string& what);

// --env NAME=VALUE, each time it was given. Throws Error(usage) where "=" is missing, or a name is
// given twice.
Environment environment_of(const std::vector<std::string>& given);

// "0,8-15" -> 0, 8, 9, ... 15; sorted, each once. Throws Error(usage) on a rank beyond `ranks`.
std::vector<WorldRank> parse_ranks(const std::string& text, int ranks);

}  // namespace ghostrank
