// The keys of `collectives` that concern one library: its environment variables, NCCL's graph
// dumps.
//
// All throw Error(usage) "FILE:LINE:COL: what; what to do". Threading: keep no state.
#pragma once

#include <string>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The mapping of a key, or null where it is not given. `example` shows the form.
const YamlValue* mapping_of(const Setting& setting, const char* example);

// {NCCL_ALGO: Ring}; refuses what collides with other keys, which are known.
void read_library_environment(const Setting& environment, CollectiveSpec& out);

// Where node_template is a graph dump: reads it, and leaves "auto" as the template for groups that
// it is not for. `near` is the folder of the job file.
void read_nccl_graphs(const Setting& node_template, const std::string& near, CollectiveSpec& out);
void check_nccl_graphs(const Setting& node_template, const ClusterSpec& cluster,
                       const CollectiveSpec& collectives);

// The value of node_template with the dump's text in place of its path, so that a result can be
// replayed without the file, and processes with different files do not play one job.
YamlValue nccl_graph_in_place(const Setting& node_template, const std::string& near);

}  // namespace ghostrank
