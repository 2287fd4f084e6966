// The findings of a diagnosis by subject. Each function adds those that explain kLeastShare of the
// step or more.
//
// Units: seconds of the emulated cluster, per step. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/diagnosis/diagnosis.h"
#include "tools/diagnosis/setting.h"

namespace ghostrank {

struct StepFigures {
  const StoredRun& run;
  double seconds = 0, compute = 0, exposed = 0, bubble = 0;  // medians over iterations
  NicSetting setting;
  std::vector<NicUse> nics;
  std::string bottleneck;

  double waiting() const { return exposed + bubble; }
  bool matters(double part) const { return part >= kLeastShare * seconds && part > 0; }
};

void find_parts_of_step(const StepFigures& step, std::vector<Cause>& findings);
void find_network(const StepFigures& step, std::vector<Cause>& findings);
void find_servers(const StepFigures& step, std::vector<Cause>& findings);
void find_other_jobs(const StepFigures& step, std::vector<Cause>& findings);
void find_machine(const StepFigures& step, std::vector<Cause>& findings);

// The share of a core that a switch beside the ranks used; 0: none did, or it is not known.
double switch_busy(const Result& result);

// Adds what a resource is busy for: at most what ranks wait for, unless it is busy all the time.
void add_resource(const StepFigures& step, Cause finding, double busy,
                  std::vector<Cause>& findings);

}  // namespace ghostrank
