#include "profiles/trace/readers/import.h"

#include <algorithm>
#include <filesystem>
#include <fnmatch.h>

#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "profiles/trace/pickle.h"
#include "profiles/trace/readers/chakra_file.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/goal_rank.h"
#include "profiles/trace/sqlite_rows.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

std::string_view first_line(std::string_view head) { return head.substr(0, head.find('\n')); }

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// True if `bracket` is the first character after blanks, with which Kineto's files begin.
bool begins_with(std::string_view head, char bracket) {
  const auto at = head.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && head[at] == bracket;
}

bool is_chakra(std::string_view path, std::string_view head) {
  return has(fs::path(path).filename().string(), ".et") && looks_like_chakra(head);
}
bool is_execution(std::string_view, std::string_view head) { return is_execution_trace(head); }
bool is_kineto(std::string_view, std::string_view head) {
  return begins_with(head, '{') &&
         (has(head, "\"traceEvents\"") || has(head, "\"distributedInfo\"") ||
          has(head, "\"schemaVersion\""));
}
bool is_param(std::string_view, std::string_view head) {
  return begins_with(head, '[') && (has(head, "\"comms\"") || has(head, "\"compute\""));
}
bool is_simai(std::string_view, std::string_view head) {
  const std::string_view line = first_line(head);
  return line.starts_with("HYBRID_") || line.starts_with("MICRO") || line.starts_with("DATA") ||
         line.starts_with("MODEL");
}
bool is_aicb(std::string_view, std::string_view head) {
  return has(head, "comm_type") && has(head, "comm_group") && has(head, "msg_size");
}
bool is_layers(std::string_view, std::string_view head) {
  return first_line(head).starts_with("layer_index");
}
bool is_inspector(std::string_view, std::string_view head) {
  return begins_with(head, '{') &&
         (has(head, "coll_perf") || has(head, "p2p_perf") || has(head, "dump_stats"));
}
bool is_flight_recorder(std::string_view, std::string_view head) {
  return head.starts_with('\x80') || is_old_pickle(head) ||
         (begins_with(head, '{') && (has(head, "\"pg_config\"") || has(head, "\"pg_status\"") ||
                                     has(head, "\"collective_seq_id\"")));
}
bool is_nccl_log(std::string_view, std::string_view head) { return has(head, " NCCL INFO "); }
bool is_goal(std::string_view, std::string_view head) {
  return head.starts_with(kGoalMark) || has(head, "num_ranks");
}

bool is_nsys(std::string_view, std::string_view head) { return head.starts_with(kSqliteMark); }

constexpr TraceFormat kFormats[] = {
    {"pytorch-et", "PyTorch's execution trace, JSON", import_execution_trace, is_execution},
    {"kineto", "Kineto's trace of PyTorch's profiler, JSON", import_kineto, is_kineto},
    {"chakra", "Chakra ET, protobuf 0.0.4 and 1.0.0, and its communicators", import_chakra,
     is_chakra},
    {"param", "PARAM's basic comms trace", import_param, is_param},
    {"simai", "workload text of SimAI and AICB", import_simai, is_simai},
    {"aicb", "log of AICB, CSV", import_aicb, is_aicb},
    {"inspector", "NCCL Inspector, JSON lines, v4.0 to v4.4", import_inspector, is_inspector},
    {"flight-recorder", "PyTorch's Flight Recorder, JSON or pickle", import_flight_recorder,
     is_flight_recorder},
    {"nccl-log", "NCCL's log, NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,COLL", import_nccl_log,
     is_nccl_log},
    {"nsys", "NVIDIA Nsight Systems, exported as SQLite with --include-blobs=true, 3.24 and 3.25",
     import_nsys, is_nsys},
    {"goal", "GOAL of LogGOPSim, text and binary", import_goal, is_goal},
    {"dnn_benchmark", "layers of SwitchML's dnn_benchmark, CSV", import_layers, is_layers}};

const TraceFormat* format_of(const std::string& file) {
  const std::string head = trace_head(file, kTraceHead);
  for (const TraceFormat& one : kFormats)
    if (one.looks_like(file, head)) return &one;
  return nullptr;
}

// The name of the packer whose file begins so; empty: none of those that people use for traces.
std::string_view packer_of(std::string_view head) {
  constexpr std::size_t kTarMark = 257;
  constexpr std::pair<std::string_view, std::string_view> kMarks[] = {{"\x28\xb5\x2f\xfd", "zstd"},
                                                                      {"PK\x03\x04", "zip"},
                                                                      {"\xfd"
                                                                       "7zXZ",
                                                                       "xz"},
                                                                      {"BZh", "bzip2"},
                                                                      {"7z\xbc\xaf", "7z"},
                                                                      {"\x04\x22\x4d\x18", "lz4"}};
  for (const auto& [mark, name] : kMarks)
    if (head.starts_with(mark)) return name;
  return head.size() > kTarMark && head.substr(kTarMark).starts_with("ustar") ? "tar" : "";
}

void refuse_packed(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (const std::string_view packer = packer_of(trace_head(file, kTraceHead)); !packer.empty())
      throw Error(file + ": is packed by " + std::string(packer) +
                  ", and only single files packed by gzip are read; unpack it");
}

std::string names() {
  std::string out;
  for (const TraceFormat& format : kFormats)
    out += (out.empty() ? "" : ", ") + std::string(format.name);
  return out;
}

// The first format that one of the files has. Kineto's traces come before the execution traces that
// they are joined with, Chakra's after their communicators, which have no format.
const TraceFormat* format_among(const std::vector<std::string>& files) {
  const TraceFormat* first = nullptr;
  for (const std::string& file : files) {
    const TraceFormat* its = format_of(file);
    if (!first) first = its;
    if (first && first->name != "pytorch-et") break;
    if (its && its->name == "kineto") return its;
  }
  return first;
}

// True if a reader takes the file beside those of its own format.
bool goes_along(const TraceFormat& format, const TraceFormat* its, const std::string& file) {
  if (format.name == "chakra") return file.ends_with(".json");
  if (format.name == "param") {  // of a rank that calls nothing: "[ ]"
    const std::string head = trace_head(file, kTraceHead);
    return begins_with(head, '[') && head.find_first_not_of(" \t\r\n[]") == std::string::npos;
  }
  return format.name == "kineto" && its && its->name == "pytorch-et";
}

// Files that a name stands for: itself; for a pattern "a*b" the files that match; for a folder the
// files of one format, which this function recognizes if `format` is null. `others`: traces in the
// folder of other formats.
std::vector<std::string> trace_files(const std::string& name, const TraceFormat*& format,
                                     std::vector<std::string>& others) {
  std::error_code ignored;
  const bool folder = fs::is_directory(name, ignored);
  if (!folder && (fs::exists(name, ignored) || !has(fs::path(name).filename().string(), "*")))
    return {name};
  const fs::path in = folder ? fs::path(name) : fs::path(name).parent_path();
  const std::string pattern = folder ? "*" : fs::path(name).filename().string();
  std::vector<std::string> all, out;
  std::error_code error;
  for (fs::directory_iterator at(in.empty() ? "." : in, error), end; !error && at != end;
       at.increment(error))
    if (at->is_regular_file(ignored) &&
        fnmatch(pattern.c_str(), at->path().filename().c_str(), FNM_PERIOD) == 0)
      all.push_back((in / at->path().filename()).string());
  std::sort(all.begin(), all.end());
  if (!folder) {
    out = all;
  } else {
    if (!format) format = format_among(all);
    for (const std::string& file : all) {
      const TraceFormat* its = format_of(file);
      if (format && (its == format || goes_along(*format, its, file)))
        out.push_back(file);
      else if (its)
        others.push_back(fs::path(file).filename().string() + " (" + std::string(its->name) + ")");
    }
  }
  if (out.empty()) throw Error(name + ": there is no trace; check the path");
  return out;
}

}  // namespace

std::uint32_t group_like(const TraceGroup& group, Trace& trace) {
  for (std::size_t i = 0; i < trace.groups.size(); ++i)
    if (trace.groups[i].name == group.name && trace.groups[i].members == group.members)
      return static_cast<std::uint32_t>(i);
  trace.groups.push_back(group);
  return static_cast<std::uint32_t>(trace.groups.size() - 1);
}

bool is_execution_trace(std::string_view head) {
  return head.starts_with('{') && has(head, "\"schema\"") && has(head, "\"nodes\"");
}

std::span<const TraceFormat> trace_formats() { return kFormats; }

Trace import_trace(const std::vector<std::string>& given, const std::string& name, int ranks) {
  const TraceFormat* format = nullptr;
  for (const TraceFormat& one : kFormats)
    if (one.name == name) format = &one;
  if (!format && !name.empty())
    throw Error("there is no format " + quote(name) + "; known: " + names());
  std::vector<std::string> files, others;
  for (const std::string& one : given) {
    const auto more = trace_files(one, format, others);
    files.insert(files.end(), more.begin(), more.end());
  }
  for (const std::string& file : files) note_read(file);
  if (!format) format = format_among(files);
  if (!format || !name.empty()) refuse_packed(files);
  if (!format)
    throw Error(files.front() + ": the format is none that is known; name it with --format (" +
                names() + ")");
  Trace trace = format->read(files, ranks);
  if (!others.empty())
    trace.notes.push_back(
        "not read, for another format than " + std::string(format->name) + ": " + others.front() +
        (others.size() > 1 ? " and " + std::to_string(others.size() - 1) + " more" : ""));
  return trace;
}

}  // namespace ghostrank
