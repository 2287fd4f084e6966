// `ghostrank profile export`: a profile's programs in another project's form.
#include "tools/verbs/profile/export.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <CLI/CLI.hpp>

#include "emulator/traffic/cluster.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"
#include "profiles/planners/plan.h"
#include "profiles/trace/writers/chakra.h"
#include "profiles/trace/writers/param.h"
#include "profiles/trace/writers/simai.h"
#include "tools/report/files/output_files.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostFiles = 65536;

// Schemes over which calls of a job go. No format has their servers and switches, nor what they
// leave out.
std::string schemes_of(const JobSpec& spec, const Workload& workload) {
  std::set<std::string> names;
  const Cluster cluster(spec, workload, 1);
  for (const SchemeUse& use : cluster.schemes()) names.emplace(use.name);
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Programs of a profile, or those that a job's plan has; `schemes`: of the latter.
Workload programs_of(const std::string& file, std::string& schemes) {
  const YamlValue root = parse_yaml_file(file);
  const YamlValue* program = root.find("program");
  if (root.find("roles")) return read_program(root);
  if (program && program->is_map()) return read_program(*program);
  const YamlValue* schema = root.find("schema");
  if (schema && schema->text == kModelProfile.schema)
    throw Error(file + ": a model has no programs before a job plans it; export a job with it");
  const LoadedJob job = load_job(file, {});
  if (!job.spec.jobs.empty())
    throw Error(job.spec.source_of("jobs") + ": jobs: one job is exported; name one's file");
  Workload planned = plan_workload(job.spec);
  schemes = schemes_of(job.spec, planned);
  return planned;
}

// What a format writes: a file for every rank, PREFIX followed by `before`, the rank and `after`,
// and a file for all, PREFIX followed by `more`. Some have only one of them. `lacks`: what it does
// not hold (docs/traces.md has all).
struct Format {
  std::string name, about, lacks, before, after;
  using TraceOf = std::function<std::string(WorldRank)>;
  std::function<TraceOf(const Workload&, std::size_t iteration)> traces;
  std::string more;
  std::function<std::string(const Workload&, std::size_t iteration)> whole;
};
const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"chakra", "execution traces, schema 0.0.4",
       "times below a microsecond, communicators of messages", ".", ".et",
       [](const Workload& workload, std::size_t iteration) {
         return [&workload, iteration](WorldRank rank) {
           return chakra_trace(workload, rank, iteration);
         };
       },
       ".groups.json",
       [](const Workload& workload, std::size_t) { return chakra_groups(workload); }},
      {"param",
       "PARAM's basic comms traces",
       "computations, of which startTime_ns has the times",
       "",
       ".json",
       [](const Workload& workload, std::size_t iteration) {
         const auto orders = std::make_shared<const IssueOrders>(workload, iteration);
         return
             [&workload, orders](WorldRank rank) { return param_trace(workload, *orders, rank); };
       },
       "",
       {}},
      {"simai",
       "a workload of SimAI",
       "types of elements, waits for a single one of the calls that overlap",
       "",
       "",
       {},
       ".txt",
       simai_workload}};
  return all;
}

const Format& format_named(const std::string& name) {
  return *std::find_if(formats().begin(), formats().end(),
                       [&](const Format& one) { return one.name == name; });
}

}  // namespace

int profile_export(const Argv& argv) {
  std::string file, form, out, about;
  std::vector<std::string> names;
  for (const Format& one : formats()) {
    names.push_back(one.name);
    about += (about.empty() ? "" : "; ") + one.name + ": " + one.about;
  }
  int iteration = -1;
  CLI::App app("Write what every rank does in one iteration in another project's form.",
               "ghostrank profile export");
  app.add_option("profile", file, "programs ('profile import', 'plan --programs'), or a job")
      ->required()
      ->type_name("FILE");
  app.add_option("--format", form, about)->required()->check(one_of(names));
  app.add_option("-o", out,
                 "prefix of the files: PREFIX.RANK.et and PREFIX.groups.json of chakra, "
                 "PREFIXRANK.json of param, PREFIX.txt of simai")
      ->required()
      ->type_name("PREFIX");
  app.add_option("--iteration", iteration, "of the job, from 0; default: the last that differs")
      ->check(between(0, 1'000'000));
  app.footer(
      "Examples:\n"
      "  ghostrank profile export job.yaml --format chakra -o traces/job\n"
      "  ghostrank profile export job.yaml --format param -o traces/rank");
  if (!parse(app, argv)) return 0;
  const Format& format = format_named(form);
  if (out == "-")
    throw Error(
        "-o -: a prefix of files, which cannot be stdout; write -o PREFIX, as in -o traces/job");
  const auto path = [&](int rank) {
    return out + format.before + std::to_string(rank) + format.after;
  };
  check_outputs({{"-o", format.traces ? path(0) : out + format.more}});
  std::string schemes;
  const Workload workload = programs_of(file, schemes);
  if (format.traces && static_cast<std::size_t>(workload.ranks) > kMostFiles)
    throw Error("a file for each of " + std::to_string(workload.ranks) +
                " ranks is too many; export a job of at most 65536");
  const std::size_t number = iteration < 0
                                 ? static_cast<std::size_t>(-1)
                                 : program_number(workload, static_cast<std::size_t>(iteration));
  std::vector<std::string> wrote;
  if (format.traces) {
    const Format::TraceOf trace = format.traces(workload, number);
    for (const WorldRank rank : each<WorldRank>(workload.ranks))
      write_whole(path(rank.value()), trace(rank));
    wrote.push_back(path(0) + " to " + path(workload.ranks - 1));
  }
  if (format.whole) {
    write_whole(out + format.more, format.whole(workload, number));
    wrote.push_back(out + format.more);
  }
  std::printf("wrote %s%s\n", wrote.front().c_str(),
              wrote.size() > 1 ? (" and " + wrote.back()).c_str() : "");
  std::printf("not held by %s: %s\n", format.name.c_str(), format.lacks.c_str());
  if (!schemes.empty())
    std::printf("calls over %s are written as plain collectives of all their elements\n",
                schemes.c_str());
  return 0;
}

}  // namespace ghostrank
