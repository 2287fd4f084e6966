// Which process of the job this is, read from the launcher's variables. The only place that reads
// them.
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "emulator/control.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxName = 1024;  // a greeting must fit its frame

// An empty variable counts as unset.
std::optional<std::string> text_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int> number_of(const char* variable, int least, int most) {
  const std::optional<std::string> text = text_of(variable);
  if (!text) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text->c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || value < least || value > most)
    throw Error("environment: " + std::string(variable) + "=" + *text +
                " is not a whole number from " + std::to_string(least) + " to " +
                std::to_string(most));
  return static_cast<int>(value);
}

std::string short_text_of(const char* variable, const std::string& otherwise) {
  const std::string text = text_of(variable).value_or(otherwise);
  if (text.size() > kMaxName)
    throw Error("environment: " + std::string(variable) + " is longer than " +
                std::to_string(kMaxName) + " bytes");
  return text;
}

struct LauncherVariables {
  const char *rank, *size;
};
constexpr LauncherVariables kLaunchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
};

// Rank and size of the first launcher that speaks.
void read_launcher(World& world) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const LauncherVariables& l : kLaunchers) {
    const std::optional<int> rank = number_of(l.rank, 0, kMost);
    const std::optional<int> size = number_of(l.size, 1, kMost);
    if (!rank && !size) continue;
    if (!rank || !size)
      throw Error("environment: " + std::string(rank ? l.rank : l.size) + " is set but " +
                  (rank ? l.size : l.rank) + " is not; set both, or neither for one process");
    if (*rank >= *size)
      throw Error("environment: " + std::string(l.rank) + "=" + std::to_string(*rank) +
                  " must be less than " + l.size + "=" + std::to_string(*size));
    world.rank = *rank;
    world.size = *size;
    return;
  }
}

}  // namespace

World world_from_environment() {
  World world;
  read_launcher(world);
  const std::optional<std::string> address = text_of("MASTER_ADDR");
  const std::optional<int> master_port = number_of("MASTER_PORT", 1, 65535);
  const std::optional<int> port = number_of("GHOSTRANK_PORT", 1, 65535);
  if (world.size > 1 && !address)
    throw Error("environment: WORLD_SIZE is " + std::to_string(world.size) +
                " but MASTER_ADDR is not set; set it to the address of process 0");
  if (world.size > 1 && !port && !master_port)
    throw Error("environment: WORLD_SIZE is " + std::to_string(world.size) +
                " but MASTER_PORT is not set; set it (or GHOSTRANK_PORT) to a free port of " +
                *address);
  world.master_address = address.value_or(world.master_address);
  world.master_port = port ? *port : master_port.value_or(0);
  world.job_id = short_text_of("GHOSTRANK_JOB_ID", world.job_id);
  world.token = short_text_of("GHOSTRANK_TOKEN", "");
  if (const auto seconds = number_of("GHOSTRANK_TIMEOUT_S", 1, 86'400))
    world.timeout = std::chrono::seconds(*seconds);
  return world;
}

}  // namespace ghostrank
