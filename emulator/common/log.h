// The log of a long run: which processes met, which settings were chosen, when segments begin and
// end, what stood still. Off until start_log(); never used per message.
//
// Threading: any thread may log; the main thread calls start_log(). Only log.cpp sees spdlog.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace ghostrank {

enum class LogLevel : int { trace, debug, info, warn, error, off };  // each includes those after it

// Writes lines of `least` and above to `file`, which it empties; to stderr if `file` is empty.
// Every line has the time in UTC and the rank of this process. Throws Error(environment) if the
// file cannot be opened.
void start_log(LogLevel least, const std::string& file, int rank);

bool logs(LogLevel level) noexcept;
void write_log(LogLevel level, const std::string& line);

namespace logging {

inline void append(std::string& line, std::string_view text) { line += text; }
inline void append(std::string& line, std::integral auto number) { line += std::to_string(number); }
void append(std::string& line, double number);  // six significant digits

template <typename... Parts>
void log(LogLevel level, const Parts&... parts) {
  if (!logs(level)) return;
  std::string line;
  (append(line, parts), ...);
  write_log(level, line);
}

}  // namespace logging

// Logs one line that joins texts and numbers: log_info("met ", count, " processes"). Costs one load
// while the level is off.
template <typename... Parts>
void log_debug(const Parts&... parts) {
  logging::log(LogLevel::debug, parts...);
}
template <typename... Parts>
void log_info(const Parts&... parts) {
  logging::log(LogLevel::info, parts...);
}
template <typename... Parts>
void log_warn(const Parts&... parts) {
  logging::log(LogLevel::warn, parts...);
}
template <typename... Parts>
void log_error(const Parts&... parts) {
  logging::log(LogLevel::error, parts...);
}

}  // namespace ghostrank
