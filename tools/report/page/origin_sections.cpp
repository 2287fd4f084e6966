// The sections about where the figures come from: fidelity, notes, machines, command,
// configuration.
#include "tools/report/page/html.h"
#include "tools/report/page/job_words.h"
#include "tools/report/page/sections.h"
#include "tools/report/run_facts.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

Table hosts_of(const Result& result) {
  Table table{{{"host"},
               {"ranks", Align::right},
               {"transport"},
               {"cores"},
               {"CPU time", Align::right},
               {"memory", Align::right},
               {"processor"},
               {"kernel"},
               {"libfabric"}},
              {}};
  for (const HostReport& h : result.hosts)
    table.rows.push_back(
        {h.name.empty() ? h.hostname : h.name, humane_count(h.ranks),
         h.provider == h.transport ? h.transport : h.transport + " (" + h.provider + ")", h.cores,
         humane_seconds(h.cpu_seconds), humane_bytes(static_cast<double>(h.rss_bytes)), h.cpu,
         h.kernel, h.libfabric});
  return table;
}

// An argument as a shell would want it.
std::string quoted(const std::string& argument) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<Fact> origin_facts(const StoredRun& run) {
  const Result& r = run.result;
  std::vector<Fact> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  };
  add("result", run.stored.file);
  add("job", r.job_name);
  add("started", r.started_utc);
  std::string version = r.version;
  for (const std::string& part : {r.build.commit, r.build.compiler, r.build.type})
    if (!part.empty()) version += (version.empty() ? "" : ", ") + part;
  add("ghostrank", version);
  if (r.dilation > 0 && !r.fidelity.modelled) add("dilation", significant(r.dilation));
  if (r.wall_seconds > 0) add("wall time", humane_seconds(r.wall_seconds));
  add("hash", run.hash);
  return facts;
}

std::string command_of(const Result& result) {
  std::string line;
  for (const std::string& argument : result.argv)
    line += (line.empty() ? "" : " ") + quoted(argument);
  return line.empty() ? "" : element("pre", line) + "\n";
}

}  // namespace

std::string trust_section(const StoredRun& run) {
  if (!run.judged || run.result.iterations.empty()) return "";
  return section("How far to trust it", html_facts(fidelity_facts(run.result)));
}

std::string notes_section(const StoredRun& run) {
  return section("Notes", html_list(run.result.notes));
}

std::string origin_section(const StoredRun& run) {
  return section("Where it comes from", html_facts(origin_facts(run)) + command_of(run.result) +
                                            folded("Machines", html_table(hosts_of(run.result))) +
                                            folded("Configuration: every key of the job",
                                                   html_facts(config_facts(run.config))));
}

}  // namespace ghostrank
