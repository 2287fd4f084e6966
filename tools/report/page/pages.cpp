#include "tools/report/page/pages.h"

#include "profiles/error.h"
#include "tools/report/page/result_page.h"

namespace ghostrank {
namespace {

constexpr char kRemedy[] =
    "give results of 'run --json', or one file of 'compare JOB', 'sweep' or 'bench COLLECTIVE' "
    "with --json";

}  // namespace

std::string page_of(const std::vector<std::string>& files) {
  std::vector<StoredRun> runs;
  for (const std::string& file : files) {
    const SortedJson json = read_json(file, kRemedy);
    const Field root(json, file);
    const std::string schema = root["schema"].text();
    if (files.size() == 1 && schema == "ghostrank/compare/1") return comparison_page(file);
    if (files.size() == 1 && schema == "ghostrank/sweep/1") return sweep_page(root);
    if (files.size() == 1 && schema.empty() && root["results"].json().is_array())
      return bench_page(root);
    if (schema != "ghostrank/result/1")
      throw Error(file + ": schema is '" + schema + "'; " + kRemedy);
    runs.push_back(stored_run(json, file));
  }
  return result_page(runs);
}

}  // namespace ghostrank
