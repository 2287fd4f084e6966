// A running switch of any target, and the requests that it takes while it runs.
//
// Threading: everything on the thread that runs the switch.
#pragma once

#include <string>

#include "switch/compiled/counters.h"
#include "switch/plan.h"

namespace ghostrank {

class RunningSwitch {
 public:
  virtual ~RunningSwitch() = default;
  // The plan, with the jobs admitted now.
  virtual const switchml::SwitchPlan& plan() const = 0;
  // Empty when admitted, else the reason against it.
  virtual std::string admit(const switchml::JobPlan& job) = 0;
  // Both return false when there is no such job.
  virtual bool remove(const std::string& job) = 0;
  virtual bool reset(const std::string& job) = 0;
  // Counted since the start; for jobs since they were admitted.
  virtual switchml::SwitchCounters counters() = 0;
  virtual void stop() = 0;
};

}  // namespace ghostrank
