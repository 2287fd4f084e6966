// Programs as a job's text: JSON through nlohmann-json; YAML by hand, because JSON has no blocks of
// lines.
#include <cmath>

#include "profiles/algorithms/algorithms.h"
#include "profiles/input/content_hash.h"
#include "profiles/load/json.h"
#include "profiles/load/load.h"
#include "profiles/load/program_file.h"
#include "profiles/load/program_text.h"
#include "profiles/planners/shared/machine_memory.h"
#include "profiles/workload/rank_runs.h"

namespace ghostrank {
namespace {

std::string players_of(const Workload& workload, std::size_t role) {
  std::vector<WorldRank> players;
  for (const WorldRank rank : each<WorldRank>(workload.ranks))
    if (workload.role_of[rank] == role) players.push_back(rank);
  return runs_of(players);
}

// Everything but the roles.
Json head_of(const Workload& workload) {
  Json head{{"ranks", workload.ranks},
            {"samples_per_iteration", workload.samples_per_iteration},
            {"flops_per_iteration", workload.flops_per_iteration}};
  Json groups = Json::object();
  for (const std::string& name : workload.group_names) groups[name] = Json::array();
  for (const Group& group : workload.groups)
    groups[workload.group_names[group.kind]].push_back(runs_of(group.members));
  head["groups"] = std::move(groups);
  if (workload.servers > 0) head["servers"] = workload.servers;
  if (!workload.services.empty()) {
    Json services = Json::array();
    for (const std::uint16_t kind : workload.services)
      services.push_back(workload.group_names[kind]);
    head["services"] = std::move(services);
  }
  if (!workload.order.empty()) {
    head["order"] = workload.order;
    head["cycle"] = workload.cycle;
  }
  for (const CompressedTensor& one : workload.compressed) {
    std::string line = std::to_string(one.tensor) + " " + std::string(name_of(one.type)) + " " +
                       std::to_string(one.elements) +
                       (one.rows > 0 ? " " + std::to_string(one.rows) : "");
    for (const TensorShape& part : one.parts)
      line += " " + std::to_string(part.rows) + "x" + std::to_string(part.columns);
    head["compressed"].push_back(line);
  }
  if (workload.counts.empty()) return head;
  Json counts = Json::array();
  for (const Counts& list : workload.counts) counts.push_back(*list);
  head["counts"] = std::move(counts);
  return head;
}

// Estimate: an op's line of text, its copy as JSON, and its copy in the text of the whole job.
constexpr double kBytesPerOp = 80;

void check_size(const Workload& workload) {
  double ops = 0;
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams) ops += static_cast<double>(stream.size());
  need_memory(ops * kBytesPerOp, "the text of " + std::to_string(std::llround(ops)) + " ops",
              "plan fewer micro-batches");
}

Json roles_of(const Workload& workload) {
  check_size(workload);
  Json roles = Json::array();
  for (std::size_t r = 0; r < workload.roles.size(); ++r) {
    Json iterations = Json::array();
    for (const Program& program : workload.roles[r].iterations) {
      Json streams = Json::object();
      for (std::size_t s = 0; s < program.streams.size(); ++s)
        streams[program.stream_names[s]] = text_of_ops(program, s, workload.group_names);
      iterations.push_back(std::move(streams));
    }
    roles.push_back({{"name", workload.roles[r].name},
                     {"ranks", players_of(workload, r)},
                     {"iterations", std::move(iterations)}});
  }
  return roles;
}

std::string indented(const std::string& lines, const std::string& margin) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    out += margin;
    out.append(lines, at, end - at);
    at = end;
  }
  return out;
}

std::string yaml_of(const Workload& workload) {
  std::string out = "program:\n";
  const Json head = head_of(workload);
  for (const auto& [key, value] : head.items()) {
    if (key != "groups") {
      out += "  " + key + ": " + json_text(value) + "\n";
      continue;
    }
    out += "  groups:\n";
    for (const auto& [kind, members] : value.items())
      out += "    " + json_text(kind) + ": " + json_text(members) + "\n";
    if (value.empty()) out += "    {}\n";
  }
  out += "  roles:\n";
  for (const Json& role : roles_of(workload)) {
    out += "    - name: " + json_text(role["name"]) + "\n      ranks: " + json_text(role["ranks"]) +
           "\n      iterations:\n";
    for (const Json& streams : role["iterations"]) {
      const char* margin = "        - ";
      for (const auto& [name, ops] : streams.items()) {
        const std::string& lines = ops.get_ref<const std::string&>();
        out += margin + json_text(name) + (lines.empty() ? ": ''\n" : ": |\n");
        out += indented(lines, "            ");
        margin = "          ";
      }
    }
  }
  return out;
}

}  // namespace

std::string program_profile(const Workload& workload, const std::vector<std::string>& comments) {
  std::string out;
  for (const std::string& line : comments) out += "# " + line + "\n";
  return out + "\n" + yaml_of(workload);
}

std::string contents_of_files(const JobSpec& spec) {
  std::string text;
  if (spec.collectives.own) text += spec.collectives.own->contents();
  if (spec.program)
    text += "program " + content_hash_text(program_profile(*spec.program, {})) + "\n";
  for (const JobOnNodes& one : spec.jobs) text += contents_of_files(*one.job);
  return text;
}

std::string program_job(const LoadedJob& job, const Workload& workload, ProgramForm form) {
  Json root = Json::parse(job.config_json);
  root.erase("program");
  if (form == ProgramForm::yaml) {
    std::string out =
        "# Written by 'ghostrank plan --programs'. What every rank does stands under "
        "program; model,\n# device, precision and parallel say where it came from.\n";
    for (const auto& [key, value] : root.items()) out += key + ": " + json_text(value) + "\n";
    return out + "\n" + yaml_of(workload);
  }
  root["program"] = head_of(workload);
  root["program"]["roles"] = roles_of(workload);
  return json_text(root, 1) + "\n";
}

}  // namespace ghostrank
