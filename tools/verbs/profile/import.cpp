// See import.h.
#include "tools/verbs/profile/import.h"

#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/load/config.h"
#include "profiles/load/locate.h"
#include "profiles/load/program_file.h"
#include "profiles/load/sections/job_trace.h"
#include "profiles/model/model.h"
#include "profiles/trace/readers/import.h"
#include "profiles/workload/workload_check.h"
#include "tools/arguments.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/report/profile_report.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

struct ImportFlags {
  std::vector<std::string> files;
  std::string format, out, json, device, precision = "fp32";
  int ranks = 0;
};

YamlValue device_named(const std::string& text) {
  YamlValue name;
  name.kind = YamlValue::Kind::scalar;
  name.text = text;
  name.mark.source = std::make_shared<Source>(Source{"--device", "argument", false});
  return name;
}

std::string json_of(const Trace& trace, const TraceSummary& summary, int ranks,
                    const std::vector<std::string>& notes) {
  const Json json{{"format", trace.format},
                  {"ranks", ranks},
                  {"ranks_with_a_trace", trace.given.size()},
                  {"steps", trace.steps},
                  {"ops", summary.ops},
                  {"bytes", summary.stated},
                  {"in_bytes", summary.in},
                  {"out_bytes", summary.out},
                  {"group_bytes", summary.group_bytes},
                  {"compute_seconds", seconds(summary.compute)},
                  {"compute_flops", summary.flops},
                  {"used_events", trace.used},
                  {"left_out", trace.left_out},
                  {"times", trace.unit},
                  {"notes", notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const Trace& trace, const TraceSummary& summary, int ranks,
                    const std::vector<std::string>& notes) {
  const auto total = static_cast<double>(trace.used);
  std::string text = trace.format + ": " + humane_count(ranks, "rank") + ", " +
                     std::to_string(trace.given.size()) + " with a trace, " +
                     humane_count(total, "event") + " used\n";
  Table table{{{"op"},
               {"calls", Align::right},
               {"bytes", Align::right},
               {"in", Align::right},
               {"out", Align::right}},
              {}};
  const auto bytes = [](const std::map<std::string, std::uint64_t>& of, const std::string& op) {
    const auto at = of.find(op);
    return at == of.end() ? std::string() : humane_bytes(static_cast<double>(at->second));
  };
  for (const auto& [op, count] : summary.ops)
    table.rows.push_back({op, std::to_string(count), bytes(summary.stated, op),
                          bytes(summary.in, op), bytes(summary.out, op)});
  if (!table.rows.empty()) text += "\n" + render(table);
  text += "\nnotes\n";
  for (const std::string& note : notes) text += "  - " + note + "\n";
  return text;
}

JobSpec device_spec(const ImportFlags& flags) {
  JobSpec spec;
  spec.file = "--device";
  if (!flags.device.empty())
    spec.device = make_device(resolve_profile(device_named(flags.device), kDeviceProfile, ""));
  spec.precision.parameters = *parse_data_type(flags.precision);
  return spec;
}

// Writes layers as a model, any other trace as the programs of the ranks.
void write_profile(const ImportFlags& flags, const Trace& trace,
                   const std::vector<std::string>& notes, const std::optional<Replay>& played) {
  if (trace.model) {
    write_whole(flags.out,
                "schema: " + std::string(kModelProfile.schema) + "\n" + yaml_text(*trace.model));
    return;
  }
  std::vector<std::string> comments{
      "Written by 'ghostrank profile import'; for `trace` or `program` of a job."};
  for (const std::string& file : flags.files) comments.push_back("from " + quote(file));
  comments.insert(comments.end(), notes.begin(), notes.end());
  write_whole(flags.out, program_profile(played->workload, comments));
}

void add_flags(CLI::App& app, ImportFlags& flags) {
  std::string formats;
  for (const TraceFormat& format : trace_formats())
    formats += "  " + std::string(format.name) + std::string(16 - format.name.size(), ' ') +
               std::string(format.what) + "\n";
  app.add_option("files", flags.files, "of one job: files, folders or patterns in quotes")
      ->required()
      ->type_name("FILE...");
  app.add_option("--format", flags.format, "of the files; found out if not given")
      ->type_name("NAME");
  app.add_option("-o", flags.out, "the profile, for `trace` of a job; - is stdout")
      ->type_name("FILE|-");
  app.add_option("--json", flags.json, "what was read, counted; - is stdout")->type_name("FILE|-");
  app.add_option("--ranks", flags.ranks, "ranks of the job, if the trace does not say")
      ->check(between(1, kMaxReplayRanks));
  app.add_option("--device", flags.device, "device for computations that the trace gives in FLOPs");
  app.add_option("--precision", flags.precision, "type of those computations")
      ->check(one_of({"fp32", "bf16"}))
      ->capture_default_str();
  app.footer("Formats:\n" + formats +
             "\nExamples:\n"
             "  ghostrank profile import run/ --json -\n"
             "  ghostrank profile import 'run/rank*.et' run/comm_groups.json -o run.profile.yaml\n"
             "  ghostrank profile import gpt.txt --ranks 64 -o gpt.profile.yaml");
}

}  // namespace

int profile_import(const Argv& argv) {
  ImportFlags flags;
  CLI::App app("Read a trace of a real run: count what is in it, write it as a profile.",
               "ghostrank profile import");
  add_flags(app, flags);
  if (!parse(app, argv)) return 0;
  check_outputs({{"-o", flags.out}, {"--json", flags.json}});
  const Trace trace = import_trace(flags.files, flags.format, flags.ranks);
  std::optional<Replay> played;
  std::vector<std::string> notes;
  int ranks = flags.ranks > 0 ? flags.ranks : ranks_named(trace);
  const JobSpec spec = device_spec(flags);
  if (!flags.out.empty() && !trace.model) {
    played = replay(trace, {flags.ranks, cost_on_device(spec, !flags.device.empty())});
    check_workload(played->workload, flags.files.front());
    ranks = played->workload.ranks;
  }
  notes = trace_notes(trace, played ? *played : Replay{});
  if (flags.ranks == 0 && !trace.given.empty() && !knows_ranks(trace))
    notes.emplace_back("of how many ranks the job was is unknown: ranks, in and out are as of " +
                       std::to_string(ranks) + "; say it, as in --ranks 8");
  if (trace.format == "goal" && !flags.out.empty())
    notes.emplace_back(
        "messages are those of the wire: play the profile with collectives.send_recv: "
        "generic/direct where collectives.library is not generic");
  const TraceSummary summary = summary_of(trace, ranks);
  if (!flags.out.empty()) write_profile(flags, trace, notes, played);
  if (!flags.json.empty()) write_whole(flags.json, json_of(trace, summary, ranks, notes));
  if (flags.json != "-" && flags.out != "-")
    std::fputs(text_of(trace, summary, ranks, notes).c_str(), stdout);
  return 0;
}

}  // namespace ghostrank
