#include "profiles/load/sections/job_trace.h"

#include <algorithm>
#include <filesystem>

#include "profiles/device/compute.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/model/model.h"
#include "profiles/trace/readers/import.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

struct Wanted {
  std::vector<YamlValue*> files;
  std::string format;
  int ranks = 0;
};

constexpr const char* kTraceForm =
    "write a path, a list of paths, or {files: PATH, format: NAME, ranks: N}";

void add_files(YamlValue& value, Wanted& out) {
  if (value.is_scalar()) {
    out.files.push_back(&value);
    return;
  }
  if (!value.is_list() || value.children.empty())
    fail(value.mark, "trace: " + description(value) + " names no files; " + kTraceForm);
  for (YamlValue& child : value.children) {
    if (!child.is_scalar())
      fail(child.mark, "trace: " + description(child) + " is no path; " + kTraceForm);
    out.files.push_back(&child);
  }
}

Wanted wanted_in(YamlValue& value) {
  Wanted out;
  if (!value.is_map()) {
    add_files(value, out);
    return out;
  }
  for (YamlValue& child : value.children) {
    if (child.key == "files") {
      add_files(child, out);
    } else if (child.key == "format" && child.is_scalar()) {
      out.format = child.text;
    } else if (child.key == "ranks" && child.is_scalar()) {
      const auto ranks = parse_integer(child.text);
      if (!ranks || *ranks < 1 || *ranks > kMaxReplayRanks)
        fail(child.mark, "trace.ranks: " + description(child) + " is no number of ranks");
      out.ranks = static_cast<int>(*ranks);
    } else {
      fail(child.key_mark, "trace: unknown key " + quote(child.key) + "; " + kTraceForm);
    }
  }
  if (out.files.empty()) fail(value.mark, std::string("trace: no files; ") + kTraceForm);
  return out;
}

// An absolute path: as given if it exists, else from `near`, the job's folder.
std::string located(const std::string& path, const std::string& near) {
  std::error_code ignored;
  const bool pattern = path.find('*') != std::string::npos;
  const fs::path here = pattern ? fs::path(path).parent_path() : fs::path(path);
  const bool found = here.empty() || fs::exists(here, ignored);
  const fs::path at =
      found && !(pattern && here.empty() && !near.empty()) ? fs::path(path) : fs::path(near) / path;
  return fs::absolute(at).lexically_normal().string();
}

// "program" or "model" if the file is such a profile; empty: a trace.
std::string profile_kind(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  const std::string head = trace_head(path, 64 << 10);
  if (head.starts_with("layer_index")) return "model";
  if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return "";
  if (head.find(std::string("schema: ghostrank/model/1")) != std::string::npos) return "model";
  return "program";
}

void put_text(YamlValue& value, std::string text) {
  value.text = std::move(text);
  value.quoted = true;
}

}  // namespace

void take_trace_profile(YamlValue& job, const std::string& near) {
  YamlValue* trace = job.find("trace");
  if (!trace || trace->kind == YamlValue::Kind::null) return;
  for (const char* other : {"program", "model"})
    if (const YamlValue* given = job.find(other); given && given->kind != YamlValue::Kind::null)
      fail(trace->mark,
           std::string("a job plays a trace or a ") + other + "; leave one of them out");
  if (!trace->is_scalar()) return;
  const std::string path = located(trace->text, near);
  const std::string kind = profile_kind(path);
  if (kind.empty()) return;
  std::erase_if(job.children, [&](const YamlValue& child) { return child.key == kind; });
  trace = job.find("trace");
  trace->key = kind;
  put_text(*trace, path);
}

std::unique_ptr<JobTrace> take_trace(YamlValue& job, const std::string& near, int ranks) {
  YamlValue* value = job.find("trace");
  if (!value || value->kind == YamlValue::Kind::null) return nullptr;
  const Wanted wanted = wanted_in(*value);
  std::vector<std::string> files;
  for (YamlValue* file : wanted.files) {
    put_text(*file, located(file->text, near));
    files.push_back(file->text);
  }
  auto out = std::make_unique<JobTrace>();
  out->mark = value->mark;
  out->ranks = wanted.ranks;
  out->trace = import_trace(files, wanted.format, wanted.ranks > 0 ? wanted.ranks : ranks);
  return out;
}

std::function<Picoseconds(double, double)> cost_on_device(const JobSpec& spec, bool has_device) {
  if (!has_device) return {};
  return [model = std::make_shared<const ComputeModel>(spec)](double flops, double bytes) {
    return std::max(model->products(flops, "a computation of the trace"),
                    model->memory(bytes, "a computation of the trace"));
  };
}

namespace {

// GOAL has the messages that libraries send, not calls of libraries.
void play_messages_as_they_are(JobSpec& spec) {
  std::string& algorithm = spec.collectives.algorithm(Func::send_recv);
  if (spec.collectives.library == "generic" || algorithm != "auto") return;
  algorithm = "generic/direct";
  spec.notes.push_back("trace: messages are played as they are, not as sends and receives of " +
                       spec.collectives.library +
                       ", because GOAL has those of the wire; collectives.send_recv names others");
}

}  // namespace

void replay_in_job(const JobTrace& job, const TraceKeys& given, JobSpec& spec) {
  const int cluster = spec.cluster.rank_nodes() * spec.cluster.gpus_per_node;
  const int named = job.ranks > 0            ? job.ranks
                    : knows_ranks(job.trace) ? ranks_named(job.trace)
                                             : cluster;
  if (named != cluster)
    fail(job.mark, "the trace has " + std::to_string(named) + " ranks but the cluster " +
                       std::to_string(cluster) +
                       " GPUs; they must be as many (cluster.nodes, cluster.gpus_per_node)");
  if (job.trace.format == "goal") play_messages_as_they_are(spec);
  bool by_flops = false;
  auto cost = cost_on_device(spec, given.device);
  if (given.device)
    cost = [&by_flops, on_device = std::move(cost)](double flops, double bytes) {
      by_flops = true;
      return on_device(flops, bytes);
    };
  Replay played = replay(job.trace, {named, std::move(cost)});
  for (std::string& note : trace_notes(job.trace, played)) spec.notes.push_back(std::move(note));
  std::string idle = given.device ? "device" : "";
  if (given.type) idle += (idle.empty() ? "" : ", ") + std::string("precision.parameters");
  if (!idle.empty() && !by_flops)
    spec.notes.push_back("no effect on a trace that gives times and no FLOPs: " + idle);
  spec.program = std::make_shared<const Workload>(std::move(played.workload));
}

std::vector<std::string> trace_notes(const Trace& trace, const Replay& replay) {
  const auto lines = [](std::uint64_t n, const char* what) { return std::to_string(n) + what; };
  std::vector<std::string> out{"trace (" + trace.format + "): " +
                               lines(trace.used, " events used") + "; times in " + trace.unit};
  for (const auto& [why, count] : trace.left_out)
    out.push_back("trace: " + std::to_string(count) + " left out: " + why);
  for (const std::string& note : trace.notes) out.push_back("trace: " + note);
  for (const std::string& note : replay.notes) out.push_back("trace: " + note);
  return out;
}

}  // namespace ghostrank
