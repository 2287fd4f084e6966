// What several jobs on one fabric cost each other: a table, and its JSON.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "emulator/result/result.h"
#include "profiles/job/job.h"
#include "tools/report/json/json.h"
#include "tools/text/table.h"

namespace ghostrank {

// "gpt2-xl, ddp, float32 gradients, on h100-sxm": what one job trains, and how.
std::string model_text(const JobSpec& spec);

// A fact "job NAME" for each of several jobs: what it trains, on which nodes.
std::vector<Fact> job_facts(const JobSpec& spec);

Table jobs_table(const Result& result);  // no rows if there is one job
Json jobs_json(const Result& result);

}  // namespace ghostrank
