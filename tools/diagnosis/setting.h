// What judging a run needs of its job, from the `config` of its result: the job's own files need
// not be here. What the config does not say is 0 or empty.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "tools/diagnosis/step_load.h"
#include "tools/report/stored_run.h"

namespace ghostrank {

// The value at a dotted path; null: not there.
const SortedJson& config_at(const SortedJson& config, const std::string& path);
std::string config_text(const SortedJson& config, const std::string& path);  // "": no text there
double config_number(const SortedJson& config, const std::string& path);     // 0: no number there
bool config_truth(const SortedJson& config, const std::string& path);

// Rates that change (cluster.nic.rates) are unknown here.
NicSetting nic_setting(const StoredRun& run);

}  // namespace ghostrank
