// A switch's plan, and a job as its control socket gets it. Each job of an accepted plan fits
// beside all the others.
#include <vector>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/switching/plan.h"

namespace {

constexpr int kPorts = 4;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  const std::string_view text = fuzz::text_of(data, size);
  try {
    const switchml::SwitchPlan plan = read_switch_plan(file.with(text), kPorts);
    for (const switchml::JobPlan& job : plan.jobs) {
      switchml::SwitchPlan without = plan;
      std::erase_if(without.jobs, [&](const auto& other) { return other.name == job.name; });
      fuzz::require(reason_to_refuse(without, job).empty());
    }
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  try {
    const switchml::JobPlan job = read_switch_job(text, "job");
    fuzz::require(job.slots >= 1 && job.elements >= 1);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
