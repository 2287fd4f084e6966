// Rates of NICs in time (profiles/job/nic_rates.h) as a CSV file:
//
//   seconds,rate,n2,n4-7.nic0       `rate`: of all NICs that no other column names, those of
//   0,10Gbps,10Gbps,10Gbps          dedicated servers left out; without it they keep their rate
//   12.5,2Gbps,10Gbps,500Mbps       from 12.5 seconds on
//
// Rows go upwards from 0 seconds, and the last one stays. No rate is above the NIC's own.
//
// Errors: Error(usage) with line and column. Threading: pure functions, but for the file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"
#include "profiles/job/nic_rates.h"

namespace ghostrank {

// `path` names the file in messages.
NicRates parse_nic_rates(std::string_view text, const std::string& path,
                         const ClusterSpec& cluster);

// The file of cluster.nic.rates, as given or in the folder `near`; null: the job has none.
std::shared_ptr<const NicRates> read_nic_rates(const Setting& file, const std::string& near,
                                               const ClusterSpec& cluster);

}  // namespace ghostrank
