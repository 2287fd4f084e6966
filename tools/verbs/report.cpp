// ghostrank report: results as one page to open, print and send.
#include <CLI/CLI.hpp>

#include "tools/report/files/output_files.h"
#include "tools/report/page/pages.h"
#include "tools/verbs.h"

namespace ghostrank {

int verb_report(const Argv& argv) {
  std::vector<std::string> files;
  std::string out = "report.html";
  CLI::App app(
      "Write one self-contained page of HTML about a result, or about several side by side, "
      "with ratios to the first. It needs no network and no scripts.",
      "ghostrank report");
  app.add_option("result", files,
                 "results of 'run --json', or one file of 'compare JOB', 'sweep' or 'bench "
                 "COLLECTIVE' with "
                 "--json")
      ->required()
      ->type_name("RESULT.json");
  app.add_option("-o,--output", out, "where to; - is stdout")
      ->type_name("FILE|-")
      ->capture_default_str()
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual --json job.json\n"
      "  ghostrank report job.json\n"
      "  ghostrank report memory.json virtual.json -o both.html\n\n"
      "Exit status: 0 ok; 2 usage or result; 3 environment.");
  if (!parse(app, argv)) return 0;
  const std::string page = page_of(files);
  check_outputs({{"-o", out}});
  write_whole(out, page);
  return 0;
}

}  // namespace ghostrank
