// ghostrank plan: what a job would send, without sending it.
#include <CLI/CLI.hpp>

#include "tools/plan_report.h"
#include "tools/verbs.h"

namespace ghostrank {

int verb_plan(const Argv& argv) {
  JobFlags flags;
  std::string json;
  CLI::App app("Say what a job would send, without sending it.", "ghostrank plan");
  add_job_flags(app, flags);
  app.add_option("--json", json, "the same facts as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank plan job.yaml\n"
      "  ghostrank plan job.yaml -s cluster.nodes=1024 --json -");
  if (!parse(app, argv)) return 0;
  const LoadedJob job = load(flags);
  show_plan(job, plan_workload(job.spec), json);
  return 0;
}

}  // namespace ghostrank
