// A fabric as a list of links in a file. One link a row, both directions alike:
//
//   from,to,rate              links: [{from: n0, to: tor0}, {from: tor0, to: core, rate: 800Gbps}]
//   n0,tor0                   all NICs of node 0; their rate is cluster.nic.rate
//   n1-3,tor0                 of nodes 1 to 3
//   n4.nic0,tor1              one NIC
//   tor0,core,800Gbps         two switches; rows that repeat are parallel cables
//
// As CSV (.csv; a line that begins with # is a comment; the head is optional and gives the columns'
// order) or as YAML or JSON.
// `from` of two switches is the one nearer to the NICs.
//
// Errors: Error(usage) with line and column. Threading: pure functions, but for the file.
#pragma once

#include <string>
#include <string_view>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"
#include "profiles/job/switches.h"

namespace ghostrank {

bool is_topology_file(std::string_view kind);  // by its ending

// Reads the file that `kind` names, as given or in the folder `near`.
SwitchGraph read_topology_file(const Setting& kind, const std::string& near,
                               const ClusterSpec& cluster);

// A cluster with as many nodes and NICs as the text names; `path` as below.
ClusterSpec cluster_named_in(std::string_view text, const std::string& path);

// `path` names the file in messages; its ending selects the form.
SwitchGraph parse_topology(std::string_view text, const std::string& path,
                           const ClusterSpec& cluster);

}  // namespace ghostrank
