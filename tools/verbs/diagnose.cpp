// ghostrank diagnose: what limits the step of a result, and what to do about it.
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "tools/diagnosis/diagnosis.h"
#include "tools/report/files/output_files.h"
#include "tools/verbs.h"

namespace ghostrank {

int verb_diagnose(const Argv& argv) {
  std::string file, json;
  CLI::App app(
      "Say what limits the step of a run that has ended, each finding with its figures, by the "
      "seconds of the step that it explains.",
      "ghostrank diagnose");
  app.add_option("result", file, "result of 'run --json'")->required()->type_name("RESULT.json");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Example:\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual --json job.json\n"
      "  ghostrank diagnose job.json\n\n"
      "Exit status: 0 ok; 2 usage or result; 3 environment.");
  if (!parse(app, argv)) return 0;
  const StoredRun run = read_run(file);
  check_outputs({{"--json", json}});
  const Diagnosis diagnosis = diagnose(run);
  if (!json.empty()) write_whole(json, diagnosis_json(run, diagnosis));
  if (json != "-")
    std::fputs(diagnosis_text(run, diagnosis, paint_for(STDOUT_FILENO)).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
