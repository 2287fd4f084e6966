// ghostrank nccl check: compares what a real NCCL said of itself with what is played here.
#include <array>
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/machine/templates.h"
#include "collectives/nccl/settings/versions.h"
#include "emulator/traffic/nccl_node.h"
#include "profiles/error.h"
#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"
#include "profiles/load/load.h"
#include "profiles/trace/trace_file.h"
#include "tools/nccl/check.h"
#include "tools/nccl/result.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

struct CheckFlags {
  std::vector<std::string> files, environment;
  std::string library, node = "auto", job;
  bool all = false;
};

bool read_flags(const Argv& argv, CheckFlags& flags) {
  CLI::App app(
      "Say per communicator and call whether graphs, channels, rings, trees, algorithms and "
      "protocols in NCCL's log, or in its graph dump, are those that are played here. The log is "
      "that of NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING,COLL; what it lacks is "
      "not compared. A result of 'run' is compared with what its job plays now.",
      "ghostrank nccl check");
  app.add_option("files", flags.files,
                 "logs of one run, gzip or not; or one graph dump; or one result")
      ->required()
      ->type_name("LOG|GRAPH.xml|RESULT.json");
  auto* job = app.add_option("--job", flags.job,
                             "job or result whose library, node and environment are meant")
                  ->type_name("JOB.yaml|RESULT.json");
  app.add_option("--library", flags.library,
                 "nccl-2.28 or nccl-2.30; default: by the version in the log, else nccl-2.30")
      ->excludes(job);
  app.add_option("--node", flags.node,
                 "kind of node, such as hgx-h100-400g, or the path of NCCL's topology dump (.xml); "
                 "auto: up to 8 GPUs of an HGX H100, alone a GPU of its own node")
      ->capture_default_str()
      ->excludes(job);
  app.add_option("--env", flags.environment,
                 "one of NCCL's environment variables of that run, if the log lacks "
                 "NCCL_DEBUG_SUBSYS=ENV")
      ->type_name("NAME=VALUE")
      ->excludes(job);
  app.add_flag("--all", flags.all, "show what is the same, too");
  app.footer(
      "Example:\n"
      "  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING,COLL NCCL_DEBUG_FILE=log.%h.%p "
      "...\n"
      "  ghostrank nccl check log.* --node hgx-h100-400g\n\n"
      "Exit status: 0 all that was compared is the same; 1 something differs; 2 usage or input.");
  return parse(app, argv);
}

void check_environment(const Environment& environment, const std::string& where) {
  try {
    nccl_settings(environment);
  } catch (const std::invalid_argument& error) {
    throw Error(where + ": " + error.what());
  }
}

Communicator node_of(const CheckFlags& flags) {
  Communicator at;
  if (!flags.job.empty()) {
    const LoadedJob job = load_job(flags.job, {});
    at.machine = NcclNodeOfJob(job.spec).machine();
    at.environment = job.spec.collectives.environment;
    if (!at.machine)
      throw Error(flags.job +
                  " plays nothing of NCCL; name a job whose library is nccl-2.28 or "
                  "nccl-2.30");
    return at;
  }
  at.node = flags.node;
  if (is_nccl_graph_file(flags.node)) {
    const std::string text = read_nccl_graph_file(flags.node, "");
    if (!is_nccl_topology_text(text))
      throw Error("--node " + flags.node +
                  " is a graph dump, which is what is to be checked; give the topology dump "
                  "(NCCL_TOPO_DUMP_FILE) or a kind of node");
    at.machine = parse_nccl_topology(text, flags.node);
  } else if (flags.node != "auto") {
    try {
      nccl_template(flags.node);
    } catch (const std::invalid_argument& error) {
      throw Error(std::string("--node: ") + error.what());
    }
  }
  at.environment = environment_of(flags.environment);
  check_environment(at.environment, "--env");
  return at;
}

// The library that is meant: the job's, the named one, or by the log's version.
std::string library_of(const CheckFlags& flags, const std::string& version) {
  std::string library = flags.library;
  if (!flags.job.empty()) library = load_job(flags.job, {}).spec.collectives.library;
  if (library.empty())
    return version.empty() ? std::string(kNcclLibraries.back().name) : nccl_library_of(version);
  if (!nccl_library(library))
    throw Error("--library " + library + " is none of NCCL's; give nccl-2.28 or nccl-2.30");
  return library;
}

void show(const NcclCommFindings& comm, const char* source, bool all) {
  const Paint paint = paint_for(STDOUT_FILENO);
  std::printf("\n%s  %s\n", paint.bold(comm.where).c_str(), paint.dim(comm.name).c_str());
  Table table{{{"what"}, {source}, {"here"}, {"", Align::left}}, {}, {}, paint};
  std::uint64_t same = 0;
  for (const auto* list : {&comm.communicator, &comm.calls})
    for (const NcclFinding& one : *list) {
      same += one.compared() && one.same;
      if (one.compared() && one.same && !all) continue;
      const std::string verdict = !one.compared() ? "not compared: " + one.note
                                  : one.same      ? "same"
                                                  : "differs";
      const std::string what =
          one.what +
          (one.times > 1 ? ", " + humane_count(static_cast<double>(one.times), "time") : "");
      if (one.compared() && !one.same) table.bad.push_back(table.rows.size());
      table.rows.push_back({what, one.log, one.here, verdict});
    }
  if (!table.rows.empty()) std::fputs(render(table, 2).c_str(), stdout);
  if (!all && same > 0)
    std::printf("  %s\n", (humane_count(static_cast<double>(same), "finding") +
                           (same == 1 ? " is" : " are") + " the same")
                              .c_str());
}

bool is_result(const std::string& file) { return file.ends_with(".json"); }

// A result brings its job: library, node and environment.
void check_alone(const CheckFlags& flags) {
  const std::string& file = flags.files.front();
  if (flags.files.size() > 1)
    throw Error(file + " is a result, and " + flags.files[1] +
                " is to be checked with it; check one after the other");
  if (!flags.job.empty() || !flags.library.empty() || flags.node != "auto" ||
      !flags.environment.empty())
    throw Error(file +
                " is a result, which has a job of its own; leave out --job, --library, --node and "
                "--env");
}

int nccl_check(const Argv& argv) {
  CheckFlags flags;
  if (!read_flags(argv, flags)) return 0;
  NcclFindings findings;
  std::map<std::string, std::uint64_t> left_out;
  const char* source = "in the log";
  if (is_result(flags.files.front())) {
    const std::string& file = flags.files.front();
    check_alone(flags);
    source = "in the result";
    const StoredResult result = read_result(file);
    findings = check_nccl_result(result, load_job(file, {}));
    std::printf("a result of ghostrank %s against %s\n", result.version.c_str(),
                findings.library.c_str());
  } else if (flags.files.size() == 1 && is_nccl_graph_file(flags.files.front())) {
    source = "in the dump";
    const std::string text = read_nccl_graph_file(flags.files.front(), "");
    findings = check_nccl_graphs(*parse_nccl_graphs(text, flags.files.front()),
                                 library_of(flags, ""), node_of(flags));
  } else {
    Communicator node = node_of(flags);
    NcclLog log;
    for (const std::string& file : flags.files) read_nccl_log(read_trace_file(file), file, log);
    if (log.comms.empty())
      throw Error(flags.files.front() +
                  ": there is no communicator; log with NCCL_DEBUG=INFO and "
                  "NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING,COLL");
    for (const auto& [name, value] : environment_of(flags.environment))
      if (const auto logged = log.environment.find(name);
          logged != log.environment.end() && logged->second != value)
        throw Error("--env " + name + "=" + value + ": the log says " + logged->second +
                    "; leave it out");
    if (flags.job.empty()) {
      node.environment.insert(log.environment.begin(), log.environment.end());
      check_environment(node.environment, "the log");
    }
    findings = check_nccl_log(log, library_of(flags, log.version), node);
    left_out = std::move(log.left_out);
    std::printf("NCCL %s against %s\n", log.version.empty() ? "(no version)" : log.version.c_str(),
                findings.library.c_str());
  }
  for (const NcclCommFindings& comm : findings.comms) show(comm, source, flags.all);
  std::printf("\n%s the same, %s differ, %s not compared\n",
              humane_count(static_cast<double>(findings.same)).c_str(),
              humane_count(static_cast<double>(findings.differ)).c_str(),
              humane_count(static_cast<double>(findings.not_compared)).c_str());
  for (const auto& [why, lines] : left_out)
    std::printf("left out: %s (%s)\n", why.c_str(),
                humane_count(static_cast<double>(lines), "line").c_str());
  return findings.differ > 0 ? 1 : 0;
}

}  // namespace

std::span<const Verb> nccl_verbs() {
  static constexpr std::array kVerbs{
      Verb{"check", "compare NCCL's log, a graph dump or a result with what is played here",
           nccl_check}};
  return kVerbs;
}

int verb_nccl(const Argv& argv) {
  return play_verb_of(nccl_verbs(), argv, "What a real NCCL says of itself.");
}

}  // namespace ghostrank
