// See arguments.h.
#include "tools/arguments.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <regex>
#include <sstream>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/load.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

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

// "--latency: Value slow not in range 0.000000 to 5.000000" -> "--latency: 'slow' is no number from
// 0 to 5"; empty: `what` is something else.
std::string outside(const std::string& what) {
  static const std::regex form("(.*): Value (.*) not in range (.*) to (.*)");
  std::smatch parts;
  if (!std::regex_match(what, parts, form)) return "";
  const auto bound = [](const std::string& text) {
    const std::optional<double> number = parse_number(text);
    return number && text.find('.') != std::string::npos ? significant(*number, 9) : text;
  };
  return parts[1].str() + ": '" + parts[2].str() + "' is no number from " + bound(parts[3]) +
         " to " + bound(parts[4]);
}

// What CLI11 refused, in our words where its own leave the reader guessing.
std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
  const std::string what = error.what(), kind = error.get_name();
  if (kind == "ArgumentMismatch" && what.find("At Most 1 required") != std::string::npos)
    return what.substr(0, what.find(':')) + " is given more than once; give it once";
  if (kind == "ConversionError") {  // "Could not convert: --latency = x"
    const std::size_t name = what.find(": ") + 2, value = what.find(" = ");
    if (name < value && value != std::string::npos) {
      return what.substr(name, value - name) + ": '" + what.substr(value + 3) +
             "' is not what it takes";
    }
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    std::string extras;
    const std::vector<std::string> remaining = app.remaining();
    for (const std::string& extra : remaining) extras += " " + extra;
    return (remaining.size() == 1 ? "the following argument was not expected:"
                                  : "the following arguments were not expected:") +
           extras;
  }
  if (const std::string bounds = outside(what); !bounds.empty()) return bounds;
  std::string text = what;
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// A shell variable that was never set makes such arguments.
void check_nothing_is_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool may_be = option->get_expected_min() == 0;
    for (const std::string& value : option->results()) {
      if (value.empty() && !may_be) throw Error(option->get_name() + " is empty; give it a value");
    }
  }
}

}  // namespace

bool parse(CLI::App& app, const Argv& argv) {
  app.get_formatter()->column_width(34);
  std::vector<std::string> reversed(argv.begin() + std::min<std::ptrdiff_t>(2, std::ssize(argv)),
                                    argv.end());
  std::reverse(reversed.begin(), reversed.end());  // as CLI11 wants them
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

void add_job_flags(CLI::App& app, JobFlags& flags) {
  app.add_option("job", flags.path,
                 "job file (YAML), or a result whose job is taken again; - is stdin")
      ->required()
      ->type_name("JOB.yaml");
  app.add_option("-s,--set", flags.overrides, "override any key: -s cluster.nodes=4; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->group("Job");
  add_seed(app, flags.seed, "seed of everything random (run.seed)")->group("Job");
}

CLI::Option* add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& what) {
  constexpr std::int64_t kGreatest = (std::int64_t{1} << 53) - 1;  // that of run.seed
  return app
      .add_option_function<std::string>(
          "--seed",
          [&seed](const std::string& text) {
            const std::optional<std::int64_t> number = parse_integer(text);
            if (!number || *number < 0 || *number > kGreatest) {
              throw Error("--seed: '" + text + "' is no seed; write an integer from 0 to " +
                          std::to_string(kGreatest));
            }
            seed = static_cast<std::uint64_t>(*number);
          },
          what)
      ->type_name("N");
}

LoadedJob load(const JobFlags& flags) {
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

void print_config(const LoadedJob& job) {
  constexpr std::size_t kWidest = 60;  // longer entries do not push the origins of the others away
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

void add_reserved_flag(CLI::App& app, const std::string& name) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [name](const std::vector<std::string>&) { throw Error(name + " is not available yet"); },
         "not available yet")
      ->expected(0, 1)
      ->trigger_on_parse()
      ->group("");  // not in the help: it cannot be used
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

std::vector<Rank> parse_ranks(const std::string& text, int ranks) {
  std::vector<Rank> list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const int first = parse_rank(part.substr(0, dash), text, ranks);
    const int last =
        dash == std::string::npos ? first : parse_rank(part.substr(dash + 1), text, ranks);
    for (int rank = first; rank <= last; ++rank) list.push_back(rank);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.empty()) throw Error("'" + text + "' names no rank; write for example 0,8-15");
  return list;
}

}  // namespace ghostrank
