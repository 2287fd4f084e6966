// Findings on fabric and timing: the providers that can carry messages, and how precisely this
// machine keeps time (see findings.h).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <time.h>

#include "emulator/common/monotonic.h"
#include "emulator/fabric/open.h"
#include "emulator/host/host_facts.h"
#include "profiles/error.h"
#include "tools/doctor/findings.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr int kSleeps = 200;
constexpr std::int64_t kSleepNs = 500'000;
constexpr double kWeakLatenessSeconds = 500e-6;  // p99; an idle machine wakes up within 100 µs

// How late each of kSleeps sleeps of 0.5 ms ended, in nanoseconds, sorted.
std::array<std::int64_t, kSleeps> measured_lateness() {
  std::array<std::int64_t, kSleeps> lateness{};
  for (std::int64_t& late : lateness) {
    const std::int64_t at = monotonic_ns() + kSleepNs;
    const timespec until{at / 1'000'000'000, at % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
    late = monotonic_ns() - at;
  }
  std::sort(lateness.begin(), lateness.end());
  return lateness;
}

Finding timer_finding() {
  const auto lateness = measured_lateness();
  const auto at = [&](double share) {
    return static_cast<double>(lateness[static_cast<std::size_t>(share * (kSleeps - 1))]) * 1e-9;
  };
  const bool weak = at(0.99) > kWeakLatenessSeconds;
  return {
      "timing", "timer lateness",
      "p50 " + humane_seconds(at(0.5)) + ", p99 " + humane_seconds(at(0.99)) + " (200 sleeps)",
      weak,
      weak ? "leave cores free for ghostrank: stop other programs, or start it with 'nice -n -10'"
           : ""};
}

Finding clock_finding() {
  const std::string base = "/sys/devices/system/clocksource/clocksource0/";
  const std::string source = first_line(base + "current_clocksource");
  const std::string available = first_line(base + "available_clocksource");
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  const bool weak = source != "tsc" && available.find("tsc") != std::string::npos;
  return {"timing", "clock",
          (source.empty() ? "unknown source" : source) + ", resolution " +
              humane_seconds(static_cast<double>(resolution.tv_sec) +
                             static_cast<double>(resolution.tv_nsec) * 1e-9),
          weak, weak ? "echo tsc | sudo tee " + base + "current_clocksource" : ""};
}

Finding cores_finding() {
  const int usable = usable_cores();
  std::array<double, 1> load{};
  const bool known = getloadavg(load.data(), 1) == 1;
  const bool busy = known && load[0] > 0.5 * usable;
  return {"timing", "cores",
          std::to_string(usable) + " usable" + (known ? ", load " + significant(load[0], 2) : ""),
          busy,
          busy ? "stop other programs ('ps -eo pcpu,args --sort=-pcpu | head' shows them)" : ""};
}

}  // namespace

Findings look_at_timing() {
  Findings findings{cores_finding(), clock_finding(), timer_finding()};
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty()) {
    const bool weak = governor != "performance";
    findings.push_back({"timing", "frequency governor", governor, weak,
                        weak ? "sudo cpupower frequency-set -g performance" : ""});
  }
  return findings;
}

// Providers for hardware that none of the tests had.
constexpr std::string_view kNeverRun[] = {"verbs", "efa", "psm3", "psm2", "opx", "ucx"};

namespace {

// Opens a fabric without naming a provider to learn which one `auto` picks.
void look_at_fabrics_of(FabricKind kind, Findings& findings) {
  std::string chosen, transport;
  try {
    const auto fabric = open_fabric(kind, {});
    chosen = fabric->provider();
    transport = fabric->transport();
  } catch (const Error& error) {
    findings.push_back({"fabric", "auto", "finds no provider", true, error.what()});
  }
  std::map<std::string, std::set<std::string>> domains;  // by provider
  const std::vector<FabricProvider> providers = list_fabric_providers(kind);
  for (const FabricProvider& p : providers) domains[p.name].insert(p.domain);
  for (const FabricProvider& p : providers) {
    const auto found = domains.find(p.name);
    if (found == domains.end()) continue;  // shown already
    std::string value = "version " + p.version + " on";
    for (const std::string& domain : found->second) value += " " + domain;
    domains.erase(found);
    if (!p.waitable) value += ", cannot block";
    if (!p.unsafe.empty()) value += "; not offered: " + p.unsafe;
    if (!p.caution.empty()) value += "; " + p.caution;
    if (std::find(std::begin(kNeverRun), std::end(kNeverRun), p.name.substr(0, p.name.find(';'))) !=
        std::end(kNeverRun))
      value += ", never run with ghostrank";
    if (p.name == chosen) value += "; picked by fabric.provider=auto, transport " + transport;
    findings.push_back({"fabric", p.name, value, false, "", p.name == chosen});
  }
}

}  // namespace

Findings look_at_fabric() {
  Findings findings;
  if (network_kinds().empty())
    findings.push_back({"fabric", "libfabric", "built without: a job is one process here, too",
                        true, "sudo apt-get install libfabric-dev   # and build again"});
  for (const FabricKind kind : network_kinds()) look_at_fabrics_of(kind, findings);
  return findings;
}

}  // namespace ghostrank
