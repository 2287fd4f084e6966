// ghostrank compare: results side by side, or variants of one job (compare_job.h).
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "tools/compare/comparison.h"
#include "tools/report/files/output_files.h"
#include "tools/verbs.h"
#include "tools/verbs/compare_job.h"

namespace ghostrank {
namespace {

void only_redraws(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (const std::string name = option->get_name();
        option->count() > 0 && name.starts_with("-") && name != "--redraw" && name != "--picture")
      throw Error(name + " is of runs that are played; --redraw goes with --picture alone");
}

}  // namespace

int verb_compare(const Argv& argv) {
  std::vector<std::string> files;
  std::string json;
  CompareJobFlags of_job;
  CLI::App app(
      "Hold results of 'run --json' side by side, or play variants of one job in turns (A/B); "
      "ratios are to the first.",
      "ghostrank compare");
  app.add_option("results", files, "result files, or one job with --a, --b or --variant")
      ->type_name("RESULT.json|JOB.yaml");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  add_compare_job_flags(app, of_job);
  app.footer(
      "Example:\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual --json virtual.json\n"
      "  ghostrank run job.yaml -s fabric.kind=memory --json memory.json\n"
      "  ghostrank compare memory.json virtual.json\n"
      "  ghostrank compare job.yaml --a collectives.allreduce=ring \\\n"
      "      --b collectives.allreduce=double_tree --runs 12 --margin 1% --bundle ab\n\n"
      "Exit status: 0 ok; 1 a run failed or was not faithful, or an --expect was missed; 2 usage "
      "or\n"
      "job; 3 environment; 129, 130, 143 stopped by a signal.");
  if (!parse(app, argv)) return 0;
  for (const char* flag : {"--dry-run", "--print-config"})
    refuse_beside(app, flag, {"--json", "--csv", "--picture", "--bundle", "--expect"});
  if (!of_job.redraw.empty()) only_redraws(app);
  if (compares_job(of_job, files)) return compare_job(argv, of_job, files, json);
  for (const char* name :
       {"--csv", "--picture", "--bundle", "--until", "--expect", "--runs", "--set", "--margin",
        "--max-runs", "--retries", "--processes", "--seed", "--tune", "--quiet",
        "--allow-unfaithful", "--print-config", "--dry-run"}) {
    if (app.count(name) > 0)
      throw Error(std::string(name) + " goes with variants of a job; give --a and --b, too");
  }
  if (files.size() < 2) throw Error("compare needs two results or more");

  std::vector<StoredResult> results;
  results.reserve(files.size());
  for (const std::string& file : files) results.push_back(read_result(file));
  if (!json.empty()) write_whole(json, comparison_json(results));
  if (json != "-") std::fputs(comparison_text(results, paint_for(STDOUT_FILENO)).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
