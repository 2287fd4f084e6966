// Reads files of any known format into a Trace, from which `ghostrank profile import` writes a
// profile or a summary. Threading: pure, except that it reads files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/trace/replay.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

struct TraceFormat {
  std::string_view name;  // as in --format
  std::string_view what;  // for people
  Trace (*read)(const std::vector<std::string>& files, int ranks);
  // `head`: first bytes, unpacked
  bool (*looks_like)(std::string_view path, std::string_view head);
};
std::span<const TraceFormat> trace_formats();

// A name is a file, a folder or a pattern ("run/*.et"). Empty `format`: recognized from the files.
// `ranks`: size of the job as far as known, else 0. Throws Error(usage).
Trace import_trace(const std::vector<std::string>& names, const std::string& format, int ranks);

}  // namespace ghostrank
