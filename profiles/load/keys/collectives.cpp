// Keys of a job: the library and its algorithms.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

constexpr std::array kKeys{
    Key{"collectives.library", KeyType::string, "generic",
        "library whose algorithms and schedules are played: generic, gloo, openmpi-4.1, nccl-2.28, "
        "nccl-2.30, or a "
        "plugin's (what that lacks is generic's)"},
    Key{"collectives.plugins", KeyType::any, "[]",
        "shared objects with your own algorithms, routings, congestion controls and placements: a "
        "list of paths, as "
        "given or next to the job"},
    Key{"collectives.allreduce", KeyType::string, "auto",
        "algorithm, as `ghostrank schedule` names it; auto: the library's own "
        "choice; lib/name: another "
        "library's; x.xml: an MSCCL file, as given or next to the job"},
    Key{"collectives.reduce_scatter", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_gather", KeyType::string, "auto", "likewise"},
    Key{"collectives.broadcast", KeyType::string, "auto", "likewise"},
    Key{"collectives.reduce", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_to_all", KeyType::string, "auto", "likewise"},
    Key{"collectives.send_recv", KeyType::string, "auto", "likewise"},
    Key{"collectives.barrier", KeyType::string, "auto", "likewise"},
    Key{"collectives.gather", KeyType::string, "auto", "likewise"},
    Key{"collectives.scatter", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_gather_v", KeyType::string, "auto", "likewise"},
    Key{"collectives.all_to_all_v", KeyType::string, "auto", "likewise"},
    Key{"collectives.channels", KeyType::integer, "0",
        "rings (or trees) that share the data; 0: one per NIC of a node", 0, 64}
        .in("generic nccl plugin"),
    Key{"collectives.slice", KeyType::size, "0",
        "largest message, into which blocks are cut; 0: one message per block", 0, kMaxSize}
        .in("generic plugin"),
    Key{"collectives.credits", KeyType::integer, "0",
        "messages of a connection that may be in flight; 0: unlimited", 0, 1e6}
        .in("generic plugin"),
    Key{"collectives.protocol", KeyType::choice, "auto",
        "how messages are framed, but for sends and receives (all-to-all, gather, scatter); auto: "
        "tuned",
        0, 0, "auto Simple LL LL128"}
        .in("nccl"),
    Key{"collectives.max_channels", KeyType::integer, "0",
        "channels that one call may use; 0: the tuner's limit", 0, 64}
        .in("nccl"),
    Key{"collectives.node_template", KeyType::string, "auto",
        "kind of node that its rings and trees were found on, such as hgx-h100-400g, or the path "
        "of a "
        "graph dump or topology file of NCCL (.xml); auto: a node with the cluster's GPUs and NICs"}
        .in("nccl"),
    Key{"collectives.node_cpu", KeyType::choice, "auto",
        "whose CPUs a node has: NCCL's rates differ; auto: Intel's, or a described node's own", 0,
        0, "auto intel amd"}
        .in("nccl"),
    Key{"collectives.environment", KeyType::any, "{}",
        "NCCL's environment variables, as in {NCCL_ALGO: Ring}; those of the process have no "
        "effect"}
        .in("nccl"),
    Key{"collectives.groups", KeyType::any, "{}",
        "algorithms for some kinds of group, as in {dp: {allreduce: ring}}"}};

}  // namespace

std::span<const Key> collectives() { return kKeys; }

}  // namespace ghostrank::job_tables
