// `ghostrank profile export`: a profile's programs in another project's form.
#include "tools/verbs/profile_export.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/plan.h"
#include "profiles/trace/writers/chakra.h"
#include "tools/report/output_files.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostFiles = 65536;

// Programs of a profile, or those that a job's plan has.
Workload programs_of(const std::string& file) {
  const YamlValue root = parse_yaml_file(file);
  const YamlValue* program = root.find("program");
  if (root.find("roles")) return read_program(root);
  if (program && program->is_map()) return read_program(*program);
  const YamlValue* schema = root.find("schema");
  if (schema && schema->text == kModelProfile.schema)
    throw Error(file + ": a model has no programs before a job plans it; export a job with it");
  return plan_workload(load_job(file, {}).spec);
}

}  // namespace

int profile_export(const Argv& argv) {
  std::string file, format, out;
  int iteration = -1;
  CLI::App app("Write what every rank does in one iteration in another project's form.",
               "ghostrank profile export");
  app.add_option("profile", file, "programs ('profile import', 'plan --programs'), or a job")
      ->required()
      ->type_name("FILE");
  app.add_option("--format", format, "chakra: execution traces, schema 0.0.4")
      ->required()
      ->check(one_of({"chakra"}));
  app.add_option("-o", out, "prefix of the files: PREFIX.RANK.et, PREFIX.groups.json")
      ->required()
      ->type_name("PREFIX");
  app.add_option("--iteration", iteration, "of the job, from 0; default: the last that differs")
      ->check(between(0, 1'000'000));
  app.footer(
      "Example:\n"
      "  ghostrank profile export job.yaml --format chakra -o traces/job");
  if (!parse(app, argv)) return 0;
  const Workload workload = programs_of(file);
  if (static_cast<std::size_t>(workload.ranks) > kMostFiles)
    throw Error("a file for each of " + std::to_string(workload.ranks) +
                " ranks is too many; export a job of at most 65536");
  const std::size_t number = iteration < 0
                                 ? static_cast<std::size_t>(-1)
                                 : program_number(workload, static_cast<std::size_t>(iteration));
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    write_whole(out + "." + to_string(rank) + ".et", chakra_trace(workload, rank, number));
  write_whole(out + ".groups.json", chakra_groups(workload));
  std::printf("wrote %s.0.et to %s.%d.et and %s.groups.json\n", out.c_str(), out.c_str(),
              workload.ranks - 1, out.c_str());
  return 0;
}

}  // namespace ghostrank
