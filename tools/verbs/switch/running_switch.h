// A switch at work, whichever target it is: what can be asked of it while it runs.
//
// Threading: everything on the thread that runs the switch.
#pragma once

#include <string>

#include "switch/counters.h"
#include "switch/plan.h"

namespace ghostrank {

class RunningSwitch {
 public:
  virtual ~RunningSwitch() = default;
  // With the jobs that it has now.
  virtual const switchml::SwitchPlan& plan() const = 0;
  // Empty when admitted, else why not.
  virtual std::string admit(const switchml::JobPlan& job) = 0;
  // False where there is no such job.
  virtual bool remove(const std::string& job) = 0;
  virtual bool reset(const std::string& job) = 0;
  // Since it started; of jobs: since they were admitted.
  virtual switchml::SwitchCounters counters() = 0;
  virtual void stop() = 0;
};

}  // namespace ghostrank
