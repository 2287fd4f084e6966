// See chrome_trace.h.
#include "tools/report/pictures/chrome_trace.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
#include <zlib.h>

#include "profiles/error.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"

namespace ghostrank {
namespace {

constexpr std::uint8_t kStage = 4;  // Span::kind
constexpr std::array<std::string_view, 5> kCategories{"compute", "collective", "p2p", "wait",
                                                      "stage"};

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

// Shortest form that reads back as the same double: exact for the first 1,000 emulated seconds, as
// modelled time is whole picoseconds and a trace counts microseconds.
double microseconds(Picoseconds t) {
  return static_cast<double>(t) / static_cast<double>(kPicosPerMicro);
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string name_of_stream(const Workload& workload, const Span& span) {
  if (span.rank.value() < workload.role_of.size()) {
    const Role& role = workload.roles[workload.role_of[span.rank]];
    if (!role.iterations.empty() && span.stream < role.iterations.front().stream_names.size()) {
      return role.iterations.front().stream_names[span.stream];
    }
  }
  return "stream " + std::to_string(span.stream);
}

// Chrome traces forbid overlapping spans on one thread, so each operation that a stream has in
// flight takes a slot, and each slot is a thread.
std::string thread_name(const Workload& workload, const Span& span) {
  const std::string name = "rank " + to_string(span.rank) + " " + name_of_stream(workload, span);
  return span.slot == 0 ? name : name + " (" + std::to_string(span.slot + 1) + ")";
}

std::string metadata(const char* what, int process, int tid, const std::string& name) {
  return line_of(
      {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", tid}, {"args", {{"name", name}}}});
}

// Numbers threads by rank, stream and slot, because viewers list them by their numbers. Stages have
// the numbers of their parts, in processes of their own.
class Threads {
 public:
  explicit Threads(const std::vector<Span>& spans) {
    for (const Span& span : spans)
      if (span.kind != kStage) numbers_[key_of(span)] = 0;
    int next = 0;
    for (auto& [key, number] : numbers_) number = next++;
  }
  int of(const Span& span) const {
    return span.kind == kStage ? static_cast<int>(span.part) : numbers_.at(key_of(span));
  }

 private:
  using Key = std::tuple<WorldRank, std::uint8_t, std::uint8_t>;
  static Key key_of(const Span& span) { return {span.rank, span.stream, span.slot}; }
  std::map<Key, int> numbers_;
};

std::string event(const Span& span, int process, int thread) {
  Json json{{"name", span.label},
            {"cat", kCategories[span.kind]},
            {"ph", "X"},
            {"pid", process},
            {"tid", thread},
            {"ts", microseconds(span.start)},
            {"dur", microseconds(span.duration)}};
  if (span.bytes > 0) json["args"] = {{"bytes", span.bytes}};
  return line_of(json);
}

// An event of the job: a line over all threads.
std::string instant(const EventReport& event) {
  return line_of({{"name", event.what},
                  {"cat", event.kind},
                  {"ph", "i"},
                  {"s", "g"},
                  {"pid", 0},
                  {"tid", 0},
                  {"ts", event.at_s * 1e6}});
}

}  // namespace

void write_chrome_trace(const std::string& path, const Result& result, const Workload& workload) {
  const bool compressed = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  Replacement beside(path);
  GzFile file(
      gzopen(beside.name().c_str(), compressed ? "wb6" : "wbT"));  // T: plain, no gzip frame
  const auto fail = [&path] {
    throw Error("cannot write the trace " + path + ": " + std::strerror(errno) +
                    "; choose another --trace file",
                ErrorKind::environment);
  };
  if (!file) fail();
  const auto put = [&](std::string_view text) {
    if (gzwrite(file.get(), text.data(), static_cast<unsigned>(text.size())) <= 0) fail();
  };

  const char* separator = "\n";
  const auto put_item = [&](const std::string& item) {
    put(separator);
    put(item);
    separator = ",\n";
  };
  put(R"({"displayTimeUnit":"ms","traceEvents":[)");
  for (const HostReport& host : result.hosts) {
    put_item(metadata("process_name", host.index.value(), 0,
                      "host " + to_string(host.index) + " " + host.hostname));
  }
  // The stages of a tensor's parts are a process of their own, a thread for each part.
  const int hosts = static_cast<int>(result.hosts.size());
  std::map<std::pair<WorldRank, std::string>, int> tensors;
  const Threads threads(result.spans);
  std::set<std::pair<int, int>> named;
  for (const Span& span : result.spans) {
    int process = span.host.value();
    std::string thread;
    if (span.kind == kStage) {
      const auto [at, fresh] =
          tensors.try_emplace({span.rank, span.call}, hosts + static_cast<int>(tensors.size()));
      process = at->second;
      if (fresh)
        put_item(
            metadata("process_name", process, 0, "rank " + to_string(span.rank) + " " + span.call));
      thread = "part " + std::to_string(span.part);
    } else {
      thread = thread_name(workload, span);
    }
    const int number = threads.of(span);
    if (named.emplace(process, number).second)
      put_item(metadata("thread_name", process, number, thread));
    put_item(event(span, process, number));
  }
  for (const EventReport& event : result.events) put_item(instant(event));
  put("\n]}\n");
  if (gzclose(file.release()) != Z_OK) fail();  // gzclose writes the buffered rest, so it can fail
  beside.keep();
}

}  // namespace ghostrank
