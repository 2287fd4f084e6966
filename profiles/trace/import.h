// From files of any known format to a Trace, and from there to what `ghostrank profile import`
// writes: a profile, or a summary. Threading: pure but for reading.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/trace/replay.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

struct TraceFormat {
  std::string_view name;  // of --format
  std::string_view what;  // for people
  Trace (*read)(const std::vector<std::string>& files, int ranks);
  bool (*looks_like)(std::string_view path, std::string_view head);  // the first bytes, unpacked
};
std::span<const TraceFormat> trace_formats();

// A name is a file, a folder or a pattern ("run/*.et"). `format` empty: found out. Throws
// Error(usage).
Trace import_trace(const std::vector<std::string>& names, const std::string& format, int ranks);

}  // namespace ghostrank
