#include "tools/compare/ab/bundle.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

#include "profiles/error.h"
#include "tools/report/files/output_files.h"

extern char** environ;

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReadMe =
    "An A/B comparison of ghostrank.\n\n"
    "compare.json      settings, seeds, every run and what follows (schema ghostrank/compare/1)\n"
    "runs.csv          one row a run\n"
    "report.txt        what was printed\n"
    "picture.svg       step time of each run, median and interval of each variant\n"
    "jobs/NAME.json    each variant's job, every key resolved; 'ghostrank run' takes it\n"
    "results/*.json    what each run wrote (schema ghostrank/result/1); *.log: what it said;\n"
    "                  block001.2-a is block001-a played again, which was not faithful\n"
    "environment.json  the machine\n"
    "redraw.sh         draws report.txt and picture.svg again from compare.json\n\n"
    "To repeat a run: ghostrank run results/FILE.json (its seed is in it). A run's own seed is\n"
    "that of compare.json plus the number of its block. Intervals follow from compare.json "
    "alone.\n";

constexpr const char* kRedraw =
    "#!/bin/sh\n"
    "# Draws report.txt and picture.svg again; GHOSTRANK is the command, ghostrank unless set.\n"
    "cd \"$(dirname \"$0\")\" && exec \"${GHOSTRANK:-ghostrank}\" compare --redraw .\n";

std::string model_of_cpu() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

// Only the GHOSTRANK_ variables: others may hold secrets.
Json variables_json() {
  Json json = Json::object();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable = *at;
    const std::size_t sign = variable.find('=');
    if (variable.starts_with("GHOSTRANK_") && sign != std::string::npos)
      json[variable.substr(0, sign)] = variable.substr(sign + 1);
  }
  return json;
}

std::string environment_json(const std::string& version) {
  utsname system{};
  uname(&system);
  return dump({{"version", version},
               {"hostname", system.nodename},
               {"system", system.sysname},
               {"kernel", system.release},
               {"architecture", system.machine},
               {"cpu", model_of_cpu()},
               {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
               {"memory_bytes", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)},
               {"variables", variables_json()}});
}

[[noreturn]] void cannot_make(const std::string& folder, const std::error_code& error) {
  throw Error("cannot make " + folder + ": " + error.message() + "; choose another folder",
              ErrorKind::environment);
}

void draw(const std::string& folder, const AbComparison& comparison) {
  const AbSummary summary = summarize(comparison);
  write_whole(folder + "/report.txt", ab_text(comparison, summary, Paint{}));
  write_whole(folder + "/picture.svg", ab_svg(comparison, summary));
}

}  // namespace

Bundle::Bundle(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::exists(folder_) && !fs::is_directory(folder_))
    throw Error("--bundle " + folder_ + ": is no folder; name one that does not exist");
  if (fs::is_directory(folder_) && !fs::is_empty(folder_, error))
    throw Error("--bundle " + folder_ + ": is not empty; name a folder that does not exist");
  for (const char* name : {"/jobs", "/results"}) {
    if (fs::create_directories(folder_ + name, error); error) cannot_make(folder_, error);
  }
}

std::string Bundle::result_name(std::size_t block, const std::string& variant, int attempt) {
  char number[24];
  std::snprintf(number, sizeof number, "%03zu", block);
  return std::string("results/block") + number +
         (attempt > 1 ? "." + std::to_string(attempt) : "") + "-" + variant + ".json";
}

void Bundle::begin(const std::vector<Variant>& variants,
                   const std::vector<std::string>& config_json, const std::string& version) {
  for (std::size_t i = 0; i < variants.size(); ++i)
    write_whole(folder_ + "/jobs/" + variants[i].name + ".json", dump(Json::parse(config_json[i])));
  write_whole(folder_ + "/environment.json", environment_json(version));
  write_whole(folder_ + "/README.txt", kReadMe);
  const std::string script = folder_ + "/redraw.sh";
  write_whole(script, kRedraw);
  fs::permissions(script, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add);
}

void Bundle::write(const AbComparison& comparison) const {
  write_whole(folder_ + "/compare.json", ab_json(comparison, summarize(comparison)));
  write_whole(folder_ + "/runs.csv", ab_csv(comparison));
  draw(folder_, comparison);
}

AbComparison redraw(const std::string& folder) {
  AbComparison comparison = read_ab_comparison(folder + "/compare.json");
  draw(folder, comparison);
  return comparison;
}

}  // namespace ghostrank
