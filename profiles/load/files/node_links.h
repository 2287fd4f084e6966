// Links between the GPUs of a node (collectives/node_links.h) as a CSV file:
//
//   a,b,rate          GPUs by number, from 0 on; each direction of a link has the rate. Several
//   0,1,400Gbps       lines of one pair add up.
//   1,2,200Gbps
//
// Errors: Error(usage) with line and column. Threading: pure functions, but for the file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/node_links.h"
#include "profiles/input/keys.h"

namespace ghostrank {

bool is_node_links_file(const std::string& value);  // what cluster.intra_node.links says

// `path` names the file in messages.
NodeLinks parse_node_links(std::string_view text, const std::string& path);

// `value`: a name, or a file as given or in the folder `near`; nullopt: neither.
std::optional<NodeLinks> find_node_links(const std::string& value, const std::string& near);

// Where a job has links: gives its tree the number of GPUs that it names, and the rate of PCIe,
// unless it has them.
void complete_node_links(YamlValue& root);

// The links between the GPUs that cluster.intra_node.links and gpus name; null: the job has none.
std::shared_ptr<const NodeLinks> read_node_links(const Settings& in, const std::string& near);

}  // namespace ghostrank
