// Keys of a job: the real machines, and how a large cluster fits them.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

constexpr std::array kKeys{
    Key{"hosts", KeyType::any, "[]",
        "the real machines of ofi, one process each, in rank order; empty: as launched; elsewhere "
        "only "
        "the cores of a single one count"},
    Key{"placement", KeyType::any, "blocked",
        "which process plays which emulated node; a file or list has lines of NODES HOST", 0, 0,
        "blocked cyclic PATH"}
        .on("ofi"),
    Key{"scale.mode", KeyType::choice, "dilate",
        "how a large cluster fits few hosts: dilate: time is stretched; slice: only some nodes are "
        "played, the rest of the cluster is modelled",
        0, 0, "dilate slice"},
    Key{"scale.dilation", KeyType::auto_number, "auto",
        "how much slower than real time; auto: the least that this machine keeps up with, as "
        "measured before the run and in its warm-ups; of a slice 1",
        1, 1e9}
        .on("memory ofi packets"),
    Key{"scale.nodes", KeyType::string, kAbsent, "the nodes of the slice: 0-7 or '0-3,8'"}.where(
        "scale.mode", "slice")};

}  // namespace

std::span<const Key> hosts() { return kKeys; }

}  // namespace ghostrank::job_tables
