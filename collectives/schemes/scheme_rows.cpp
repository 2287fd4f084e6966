// The built-in schemes. A job may name one whatever library it uses.
#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/libraries.h"
#include "collectives/schemes/atp.h"
#include "collectives/schemes/blink.h"
#include "collectives/schemes/keyed/key_schemes.h"
#include "collectives/schemes/multicast.h"
#include "collectives/schemes/omnireduce.h"
#include "collectives/schemes/sharp.h"
#include "collectives/schemes/sparse_lists.h"
#include "collectives/schemes/switchml.h"

namespace ghostrank {

namespace {

std::unique_ptr<Ends> switchml(int ranks, const Communicator& comm) {
  const InSwitch& in = comm.in_switch;
  return switchml_ends(ranks,
                       {in.slots, in.packet_elements, in.timeout_ps, in.first_slot, in.packet_rate,
                        in.guarded, in.fallback_ps},
                       comm);
}

std::unique_ptr<Ends> sharp(int ranks, const Communicator& comm) {
  const InSwitch& in = comm.in_switch;
  return sharp_ends(
      ranks, {.trees = in.trees, .per_port = in.trees_per_port, .outstanding = in.slots}, comm);
}

std::unique_ptr<Ends> atp(int ranks, const Communicator& comm) {
  const InSwitch& in = comm.in_switch;
  return atp_ends(ranks, {in.slots, in.memory_slots, in.timeout_ps, in.packet_rate}, comm);
}

// An aggregator for every server; one where the job has none, which the cluster then refuses.
std::unique_ptr<Ends> omnireduce(int ranks, const Communicator& comm) {
  const OmniReduceSpec& spec = comm.omnireduce;
  return omnireduce_ends(ranks, {.aggregators = std::max(1, comm.at_servers.places),
                                 .packets = spec.packets,
                                 .block = spec.block,
                                 .columns = spec.columns,
                                 .slots = spec.slots,
                                 .timeout = spec.timeout_ps});
}

std::unique_ptr<Ends> omnireduce_switch(int ranks, const Communicator& comm) {
  const InSwitch& in = comm.in_switch;
  return omnireduce_ends(ranks, {.in_switch = true,
                                 .packets = true,
                                 .block = in.packet_elements,
                                 .columns = 1,
                                 .slots = in.slots,
                                 .first_slot = in.first_slot,
                                 .timeout = in.timeout_ps,
                                 .fallback = in.fallback_ps,
                                 .packet_rate = in.packet_rate});
}

std::unique_ptr<Ends> sparse_all_gather(int ranks, const Communicator&) {
  return sparse_list_ends(ranks, SparseLists::all_gather);
}

std::unique_ptr<Ends> sparcml(int ranks, const Communicator&) {
  return sparse_list_ends(ranks, SparseLists::split_all_gather);
}

}  // namespace

std::span<const Algorithm> scheme_rows() {
  static const auto kRows = [] {
    std::vector<Algorithm> rows;
    for (const Func func :
         {Func::all_reduce, Func::reduce_scatter, Func::all_gather, Func::broadcast, Func::reduce})
      rows.push_back({.library = kSchemes, .func = func, .name = "switchml", .ends = switchml});
    rows.push_back({.library = kSchemes, .func = Func::all_reduce, .name = "sharp", .ends = sharp});
    for (const Multicast scheme : {Multicast::orca, Multicast::elmo, Multicast::unicast})
      rows.push_back({.library = kSchemes,
                      .func = Func::broadcast,
                      .name = name_of(scheme),
                      .ends = [scheme](int ranks, const Communicator& comm) {
                        const InSwitch& in = comm.in_switch;
                        return multicast_ends(scheme, ranks, {in.packet_elements, in.slots}, comm);
                      }});
    const auto add = [&](const char* name, auto ends) {
      rows.push_back({.library = kSchemes, .func = Func::all_reduce, .name = name, .ends = ends});
    };
    add("atp", atp);
    add("parameter_server", parameter_server_ends);
    add("byteps", byteps_ends);
    add("phub", phub_ends);
    add("phub_racks", phub_racks_ends);
    add("omnireduce", omnireduce);
    add("omnireduce_switch", omnireduce_switch);
    add("sparse_all_gather", sparse_all_gather);
    add("sparcml", sparcml);
    for (const Func func : {Func::all_reduce, Func::broadcast, Func::reduce})
      rows.push_back({.library = kSchemes,
                      .func = func,
                      .name = "blink",
                      .steps_formula = func == Func::all_reduce ? "2 depth" : "depth",
                      .bytes_formula = func == Func::all_reduce ? "2(n-1) S" : "(n-1) S",
                      .make = make_blink});
    return rows;
  }();
  return kRows;
}

}  // namespace ghostrank
