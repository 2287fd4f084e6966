// A job in words, from the `config` of its result: what the config does not say is left out.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tools/report/stored_run.h"
#include "tools/text/table.h"

namespace ghostrank {

// "gpt3-175b under megatron (tp 8, pp 16, dp 8), float32 gradients, on h100-sxm: 1,024 ranks on 128
// emulated nodes (8 GPUs, 8 NICs of 400 Gb/s each), virtual, collectives of nccl-2.28"
std::string job_sentence(const StoredRun& run);

// Every key of a job with its value, lists as JSON, long ones cut: "cluster.nic.rate", "400Gbps".
std::vector<Fact> config_facts(const SortedJson& config);

// The keys whose values differ, a column for each result; no rows: none do.
Table config_differences(const std::vector<StoredRun>& runs);

}  // namespace ghostrank
