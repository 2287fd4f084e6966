// ghostrank compare: results side by side.
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "tools/compare/comparison.h"
#include "tools/report/output_files.h"
#include "tools/verbs.h"

namespace ghostrank {

int verb_compare(const Argv& argv) {
  std::vector<std::string> files;
  std::string json;
  CLI::App app("Hold results of 'run --json' side by side; ratios are to the first.",
               "ghostrank compare");
  app.add_option("results", files, "result files")->required()->type_name("RESULT.json");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  for (const char* name : {"--a", "--b", "--variant"}) add_reserved_flag(app, name);
  app.footer(
      "Example:\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual --json virtual.json\n"
      "  ghostrank run job.yaml -s fabric.kind=memory --json memory.json\n"
      "  ghostrank compare memory.json virtual.json");
  if (!parse(app, argv)) return 0;
  if (files.size() < 2) throw Error("compare needs two results or more");

  std::vector<StoredResult> results;
  results.reserve(files.size());
  for (const std::string& file : files) results.push_back(read_result(file));
  if (!json.empty()) write_whole(json, comparison_json(results));
  if (json != "-") std::fputs(comparison_text(results, paint_for(STDOUT_FILENO)).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
