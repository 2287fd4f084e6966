// The main() of every program of benchmarks: runs them with repetitions interleaved at random, and
// prints what was found as a section of docs/performance.md; with --write it replaces that section
// there.
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/measure/stolen_time.h"

namespace ghostrank::bench {
namespace {

namespace fs = std::filesystem;
const fs::path kDocs = GHOSTRANK_DOCS;

// Prints as the console reporter does, and keeps every measured run.
class Keeper : public benchmark::ConsoleReporter {
 public:
  explicit Keeper(Found& found)
      : ConsoleReporter(isatty(STDOUT_FILENO) ? OO_Color : OO_None), found_(found) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) keep(run);
    ConsoleReporter::ReportRuns(runs);
  }

 private:
  void keep(const Run& run) {
    if (run.counters.empty()) return;  // it was skipped
    const auto& [function, args] = std::tie(run.run_name.function_name, run.run_name.args);
    const std::string name = function + (args.empty() ? "" : "/" + args);
    for (const auto& [counter, value] : run.counters) found_.add(name, counter, value);
    found_.add(name, "cpu_s", run.cpu_accumulated_time / static_cast<double>(run.iterations));
  }

  Found& found_;
};

void write(const std::string& program, const Section& section) {
  if (!section.markdown.empty())
    report::write_section(kDocs / "performance.md", "bench " + program, section.markdown);
  for (const auto& [name, picture] : section.pictures)
    if (!(std::ofstream(kDocs / "pictures" / name) << picture).flush())
      throw std::runtime_error("cannot write " + (kDocs / "pictures" / name).string());
}

int main(int argc, char** argv) {
  // Interleaves repetitions, so that a slow phase of the machine falls on all benchmarks that are
  // compared.
  std::string mixed = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, mixed.data());
  int count = argc + 1;
  benchmark::Initialize(&count, arguments.data());
  const bool writes = count == 2 && std::strcmp(arguments[1], "--write") == 0;
  if (!writes && benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  Found found;
  Keeper keeper(found);
  const report::StolenTime stolen;
  benchmark::RunSpecifiedBenchmarks(&keeper);

  const std::string program = fs::path(argv[0]).filename();
  Section said = section(found);
  if (!said.markdown.empty())
    said.markdown = "`tools/dev bench " + program + "` on " +
                    std::to_string(std::thread::hardware_concurrency()) +
                    " cores, of which the hypervisor took " + figure(stolen.share(), 1, 0.01) +
                    " % meanwhile. " + said.markdown;
  std::printf("\n%s", said.markdown.c_str());
  if (writes && !found.empty()) write(program, said);  // else keep the old section
  return 0;
}

}  // namespace
}  // namespace ghostrank::bench

int main(int argc, char** argv) {
  try {
    return ghostrank::bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
}
