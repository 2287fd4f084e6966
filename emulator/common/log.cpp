#include "emulator/common/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <unistd.h>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "profiles/error.h"

namespace ghostrank {
namespace {

std::atomic<LogLevel> least_level{LogLevel::off};
std::shared_ptr<spdlog::logger> logger;  // set once, before least_level

spdlog::level::level_enum level_of(LogLevel level) {
  constexpr std::array kLevels{spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                               spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels[static_cast<std::size_t>(level)];
}

spdlog::sink_ptr sink_of(const std::string& file) {
  if (file.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file, true);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error("cannot write the log " + file + ": " + error.what() + "; choose another file",
                ErrorKind::environment);
  }
}

// The cursor may stand on the terminal's progress line: erase it first.
std::string pattern_of(const std::string& file, int rank) {
  const bool shows_progress = file.empty() && isatty(STDERR_FILENO) != 0;
  return std::string(shows_progress ? "\r\033[K" : "") + "%Y-%m-%dT%H:%M:%S.%eZ process " +
         std::to_string(rank) + " %l: %v";
}

}  // namespace

void start_log(LogLevel least, const std::string& file, int rank) {
  least_level.store(LogLevel::off);
  if (least == LogLevel::off) return;
  logger = std::make_shared<spdlog::logger>("ghostrank", sink_of(file));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      pattern_of(file, rank), spdlog::pattern_time_type::utc));
  logger->set_level(level_of(least));
  logger->flush_on(spdlog::level::trace);  // a killed run has written every line so far
  least_level.store(least);
}

bool logs(LogLevel level) noexcept { return level >= least_level.load(); }

void write_log(LogLevel level, const std::string& line) { logger->log(level_of(level), line); }

void logging::append(std::string& line, double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number);
  line += text.data();
}

}  // namespace ghostrank
