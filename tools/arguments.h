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
}  // namespace CLI

namespace ghostrank {

using Argv = std::vector<std::string>;  // the whole command line: program, verb, arguments

// False when help was asked for and printed. Throws Error(usage) on anything CLI11 refuses.
bool parse(CLI::App& app, const Argv& argv);

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
