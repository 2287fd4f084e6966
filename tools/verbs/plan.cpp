// ghostrank plan: what a job would send, without sending it.
#include "profiles/planners/plan.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "emulator/traffic/job_goal.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "tools/report/files/output_files.h"
#include "tools/report/plan_report.h"
#include "tools/search/plan_search.h"
#include "tools/verbs.h"
#include "tools/verbs/plan_search.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

bool write_goal_to(const std::string& output, const JobSpec& spec, const Workload& workload) {
  if (output == "-") return write_goal(std::cout, spec, workload);
  Replacement beside(output);
  std::ofstream file(beside.name());
  const bool some_wait = write_goal(file, spec, workload);
  if (!file.flush())
    throw Error("--output: " + output + " cannot be written: " + std::strerror(errno),
                ErrorKind::environment);
  beside.keep();
  return some_wait;
}

void export_goal(const JobSpec& spec, const Workload& workload, const std::string& output,
                 bool quiet) {
  if (!write_goal_to(output, spec, workload) || quiet) return;
  std::fprintf(stderr,
               "note: messages of %s wait for room or permission of their receivers, which GOAL "
               "does not have: there they leave at once, so a replay may take another time\n",
               spec.collectives.library.c_str());
}

// A program's ops name tensors but not the tables or layers in them, and have sizes that stay.
void check_programs(const JobSpec& spec) {
  if (spec.compression && spec.compression->adapts)
    throw Error(spec.source_of("compression.budget_ms") +
                ": compression.budget_ms: --programs keeps the sizes of one step, which this key "
                "changes from step to step; play the job itself, or leave the key out");
  const std::string key = spec.zipf                    ? "tensors.embeddings"
                          : !spec.tensor_rules.empty() ? "tensors.overlap"
                          : spec.compression && !spec.gradients.parts.empty()
                              ? "tensors.distribution"
                              : "";
  if (key.empty()) return;
  throw Error(spec.source_of(key) + ": " + key +
              ": --programs keeps no parts of tensors, whose content this key gives; play the "
              "job itself, or leave the key out");
}

struct PlanFlags {
  JobFlags job;
  std::string json, csv, programs, form, output = "-";
  bool quiet = false, only_config = false, search = false;
  SearchFlags searched;
};

void add_flags(CLI::App& app, PlanFlags& flags) {
  add_job_flags(app, flags.job);
  app.add_option("--json", flags.json, "the same facts as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--csv", flags.csv,
                 "what NICs send each other per iteration, a row a pair; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_flag("-q,--quiet", flags.quiet, "no tables")->group("Output");
  app.add_flag("--print-config", flags.only_config,
               "print every key, its value and origin; do not plan")
      ->group("Job");
  app.add_option(
         "--programs", flags.programs,
         "the job with what every rank does, op by op, for 'ghostrank run FILE'; JSON where "
         "the name ends in .json; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_flag("--search", flags.search,
               "instead: the plans that the job could have on its cluster, by the step of each "
               "(frameworks megatron, torchtitan; ddp, zero1, zero2, zero3 and fsdp)")
      ->group("Search");
  app.add_option("--best", flags.searched.best, "with --search: plans that are shown")
      ->check(between(1, 1000))
      ->type_name("N")
      ->capture_default_str()
      ->group("Search");
  app.add_option("--play", flags.searched.play,
                 "with --search: the first of them that are played in virtual time")
      ->check(between(0, 1000))
      ->type_name("N")
      ->capture_default_str()
      ->group("Search");
  app.add_option("--keep", flags.searched.keep,
                 "with --search: what stays as the job has it, as in recompute,optimizer")
      ->delimiter(',')
      ->check(one_of(plan_dimensions()))
      ->type_name("NAME,NAME")
      ->group("Search");
  app.add_option("--export", flags.form, "goal: an iteration, message by message, for LogGOPSim")
      ->check(one_of({"goal"}))
      ->group("Output");
  app.add_option("--output", flags.output, "where --export goes; - is stdout")
      ->type_name("FILE|-")
      ->capture_default_str()
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank plan job.yaml\n"
      "  ghostrank plan job.yaml -s cluster.nodes=1024 --json -\n"
      "  ghostrank plan job.yaml --search\n"
      "  ghostrank plan job.yaml --export goal --output job.goal\n"
      "  ghostrank plan job.yaml --programs step.yaml && ghostrank run step.yaml");
}

// What flags together must not ask.
void check(const CLI::App& app, const PlanFlags& flags) {
  refuse_beside(app, "--print-config",
                {"--json", "--csv", "--programs", "--search", "--export", "--output"});
  if (flags.form.empty() && flags.output != "-")
    throw Error("--output is where --export goes; give --export goal, or use --json");
  if (flags.search && (!flags.form.empty() || !flags.programs.empty() || !flags.csv.empty()))
    throw Error(
        "--search compares plans; leave out --export, --programs and --csv, which are of one plan");
  if (!flags.search &&
      (app.count("--best") > 0 || app.count("--play") > 0 || app.count("--keep") > 0))
    throw Error("--best, --play and --keep are of --search; add it, or leave them out");
}

}  // namespace

int verb_plan(const Argv& argv) {
  PlanFlags flags;
  CLI::App app("Say what a job would send, without sending it.", "ghostrank plan");
  add_flags(app, flags);
  if (!parse(app, argv)) return 0;
  check(app, flags);
  const LoadedJob job = load(flags.job);
  if (!job.spec.jobs.empty() && (flags.search || !flags.programs.empty()))
    throw Error(job.spec.source_of("jobs") +
                ": jobs: --search and --programs are of one job; give the file of one of them");
  if (flags.only_config) {
    print_config(job);
    return 0;
  }
  if (!flags.programs.empty()) check_programs(job.spec);
  check_outputs({{"--json", flags.json},
                 {"--csv", flags.csv},
                 {"--programs", flags.programs},
                 {"--output", flags.form.empty() ? "" : flags.output}});
  if (flags.search) {
    show_search(flags.job, flags.searched, flags.json, flags.quiet);
    return 0;
  }
  Patience planning("planning", !flags.quiet);
  const Workload workload = plan_workload(job.spec);
  planning.end();
  const bool stdout_taken = flags.programs == "-" || (!flags.form.empty() && flags.output == "-");
  if (!stdout_taken || !flags.csv.empty() || !flags.json.empty())
    show_plan(job, workload, {flags.json, flags.csv, flags.quiet || stdout_taken});
  if (!flags.programs.empty()) {
    const bool is_json = flags.programs.ends_with(".json");
    write_whole(flags.programs,
                program_job(job, workload, is_json ? ProgramForm::json : ProgramForm::yaml));
  }
  if (!flags.form.empty()) export_goal(job.spec, workload, flags.output, flags.quiet);
  return 0;
}

}  // namespace ghostrank
