// The keys of `collectives` that concern one library: its environment variables and NCCL's graph
// dumps.
//
// All throw Error(usage) "FILE:LINE:COL: what; what to do". Threading: keep no state.
#pragma once

#include <string>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The mapping that a key holds, or null if the key is not given. `example`, in errors, shows the
// form.
const YamlValue* mapping_of(const Setting& setting, const char* example);

// Reads {NCCL_ALGO: Ring}. Call it when the other keys are known: it refuses variables that collide
// with them.
void read_library_environment(const Setting& environment, CollectiveSpec& out);

// If node_template is a graph dump or a topology, reads it and sets the template to "auto" for the
// groups that it does not fit. `near` is the folder of the job file.
void read_nccl_graphs(const Setting& node_template, const std::string& near, CollectiveSpec& out);
void check_nccl_graphs(const Setting& node_template, const ClusterSpec& cluster,
                       const CollectiveSpec& collectives);

// The value of node_template with the dump's text instead of its path. So a result can be replayed
// without the file, and processes with different files notice that their jobs differ.
YamlValue nccl_graph_in_place(const Setting& node_template, const std::string& near);

}  // namespace ghostrank
