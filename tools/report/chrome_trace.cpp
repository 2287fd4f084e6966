// See chrome_trace.h.
#include "tools/report/chrome_trace.h"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <zlib.h>

#include "profiles/error.h"
#include "tools/report/output_files.h"

namespace ghostrank {
namespace {

constexpr int kStreamsPerRank = 16;  // thread ids: (rank * 16 + stream) * lanes + lane
constexpr std::array<std::string_view, 4> kCategories{"compute", "collective", "p2p", "wait"};

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
      result += code.data();
    } else {
      result += c;
    }
  }
  return result;
}

// Exact: Chrome traces count microseconds, and six decimals hold every picosecond.
std::string microseconds(Picoseconds t) {
  std::array<char, 40> text{};
  const Picoseconds size = t < 0 ? -t : t;
  std::snprintf(text.data(), text.size(), "%s%" PRId64 ".%06" PRId64, t < 0 ? "-" : "",
                size / kPicosPerMicro, size % kPicosPerMicro);
  return text.data();
}

std::string name_of_stream(const Workload& workload, const Span& span) {
  const auto rank = static_cast<std::size_t>(span.rank);
  if (rank < workload.role_of.size()) {
    const Role& role = workload.roles[workload.role_of[rank]];
    if (!role.iterations.empty() && span.stream < role.iterations.front().stream_names.size()) {
      return role.iterations.front().stream_names[span.stream];
    }
  }
  return "stream " + std::to_string(span.stream);
}

// Chrome traces forbid overlapping spans on one thread, so each operation that a stream has in
// flight takes a lane, and each lane is a thread.
std::string thread_name(const Workload& workload, const Span& span) {
  const std::string name =
      "rank " + std::to_string(span.rank) + " " + name_of_stream(workload, span);
  return span.lane == 0 ? name : name + " (" + std::to_string(span.lane + 1) + ")";
}

std::string metadata(const char* what, int pid, int tid, const std::string& name) {
  return std::string(R"({"name":")") + what + R"(","ph":"M","pid":)" + std::to_string(pid) +
         R"(,"tid":)" + std::to_string(tid) + R"(,"args":{"name":")" + escaped(name) + "\"}}";
}

int thread_of(const Span& span) {
  return (span.rank * kStreamsPerRank + span.stream) * kMaxAtOnce + span.lane;
}

std::string event(const Span& span) {
  std::string text = R"({"name":")" + escaped(span.label) + R"(","cat":")" +
                     std::string(kCategories[span.kind & 3u]) + R"(","ph":"X","pid":)" +
                     std::to_string(span.host) + R"(,"tid":)" + std::to_string(thread_of(span)) +
                     R"(,"ts":)" + microseconds(span.start) + R"(,"dur":)" +
                     microseconds(span.duration);
  if (span.bytes > 0) text += R"(,"args":{"bytes":)" + std::to_string(span.bytes) + "}";
  return text + "}";
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
    put_item(metadata("process_name", host.index, 0,
                      "host " + std::to_string(host.index) + " " + host.hostname));
  }
  std::set<std::pair<int, int>> named;
  for (const Span& span : result.spans) {
    if (named.emplace(span.host, thread_of(span)).second) {
      put_item(metadata("thread_name", span.host, thread_of(span), thread_name(workload, span)));
    }
    put_item(event(span));
  }
  put("\n]}\n");
  if (gzclose(file.release()) != Z_OK) fail();  // gzclose writes the buffered rest, so it can fail
  beside.keep();
}

}  // namespace ghostrank
