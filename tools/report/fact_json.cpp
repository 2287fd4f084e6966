// Writes the facts of a plan (schema ghostrank/plan/1, see plan_report.h) and the layers of a model
// (ghostrank/model-facts/1, see profile_report.h) as JSON.
#include <nlohmann/json.hpp>

#include "tools/report/json/json.h"
#include "tools/report/json/network_json.h"
#include "tools/report/nic_traffic.h"
#include "tools/report/plan_report.h"
#include "tools/report/profile_report.h"
#include "tools/report/result_json.h"
#include "tools/report/tensor_report.h"

namespace ghostrank {
namespace {

Json programs_json(const PlanFacts& facts) {
  Json list = Json::array();
  for (const StreamFacts& s : facts.streams) {
    list.push_back({{"role", s.role},
                    {"ranks", s.ranks},
                    {"stream", s.stream},
                    {"computes", s.computes},
                    {"compute_seconds", s.compute_seconds},
                    {"collectives", s.collectives},
                    {"sends", s.sends},
                    {"receives", s.receives}});
  }
  return list;
}

Json groups_json(const PlanFacts& facts) {
  Json list = Json::array();
  for (const GroupFacts& g : facts.groups) {
    list.push_back({{"group", g.name},
                    {"communicators", g.communicators},
                    {"smallest", g.smallest},
                    {"largest", g.largest}});
  }
  return list;
}

Json background_json(const PlanFacts& facts) {
  Json list = Json::array();
  for (const BackgroundFacts& b : facts.background) {
    list.push_back({{"group", b.group},
                    {"ranks", b.clients},
                    {"steps", b.steps},
                    {"of_steps", b.cycle},
                    {"bytes", b.bytes}});
  }
  return list;
}

Json collectives_json(const TrafficPlan& traffic) {
  Json list = Json::array();
  for (const CollectiveTraffic& c : traffic.collectives) {
    list.push_back({{"op", c.op},
                    {"group", c.group},
                    {"algorithm", c.algorithm},
                    {"calls", c.calls},
                    {"bytes", c.buffer_bytes},
                    {"messages", c.messages},
                    {"message_bytes", c.bytes},
                    {"wire_messages", c.wire_messages},
                    {"wire_bytes", c.wire_bytes},
                    {"exact", c.estimate.empty()},
                    {"seconds_at_least", c.seconds_at_least}});
  }
  return list;
}

Json traffic_json(const PlanFacts& facts) {
  const TrafficPlan& t = facts.traffic;
  Json pairs = Json::array();
  for (const PairTraffic& p : t.pairs) {
    pairs.push_back({{"src", nic_name(p.source_nic, facts.nics_per_node)},
                     {"dst", nic_name(p.target_nic, facts.nics_per_node)},
                     {"bytes", static_cast<std::uint64_t>(p.bytes)},
                     {"messages", static_cast<std::uint64_t>(p.messages)}});
  }
  Json nics = Json::array();
  for (const NicTraffic& nic : nic_traffic(t.pairs)) {
    nics.push_back({{"nic", nic_name(nic.nic, facts.nics_per_node)},
                    {"tx_bytes", static_cast<std::uint64_t>(nic.tx_bytes)},
                    {"rx_bytes", static_cast<std::uint64_t>(nic.rx_bytes)}});
  }
  return {{"wire_bytes_per_iteration", t.wire_bytes},
          {"messages_per_iteration", t.wire_messages},
          {"intra_node_bytes_per_iteration", t.intra_bytes},
          {"intra_node_messages_per_iteration", t.intra_messages},
          {"busiest_nic_bytes", t.busiest_nic_bytes},
          {"pairs", std::move(pairs)},
          {"nics", std::move(nics)}};
}

// Null for a plan without stages; the bubble is null where the schedule has no closed form.
Json pipeline_json(const PlanFacts& facts) {
  if (!facts.pipeline) return nullptr;
  return {{"schedule", facts.pipeline->schedule},
          {"stages", facts.pipeline->stages},
          {"chunks", facts.pipeline->chunks},
          {"micro_batches", facts.pipeline->micro_batches},
          {"bubble_of_compute", or_null(pipeline_bubble(*facts.pipeline))}};
}

Json memory_json(const PlanFacts& facts) {
  if (!facts.memory) return nullptr;
  const GpuMemory& m = *facts.memory;
  return {{"weights_bytes", m.weights},
          {"gradients_bytes", m.gradients},
          {"optimizer_bytes", m.optimizer},
          {"activations_bytes", m.activations > 0 ? Json(m.activations) : Json(nullptr)},
          {"device_bytes",
           facts.device_memory_bytes > 0 ? Json(facts.device_memory_bytes) : Json(nullptr)}};
}

}  // namespace

std::string plan_json(const PlanFacts& facts) {
  return dump({{"schema", "ghostrank/plan/1"},
               {"job", facts.job},
               {"model", facts.model},
               {"ranks", facts.ranks},
               {"nodes", facts.nodes},
               {"storage_nodes", facts.storage_nodes},
               {"steady_from_iteration", facts.opening},
               {"programs", programs_json(facts)},
               {"groups", groups_json(facts)},
               {"collectives", collectives_json(facts.traffic)},
               {"background", background_json(facts)},
               {"traffic", traffic_json(facts)},
               {"network", network_json(facts.traffic.network)},
               {"tensors", tensors_json(facts.tensors)},
               {"compression", compression_json(facts.compression)},
               {"pipeline", pipeline_json(facts)},
               {"gpu_memory", memory_json(facts)},
               {"parameters", facts.parameters > 0 ? Json(facts.parameters) : Json(nullptr)},
               {"flops_per_iteration", facts.flops > 0 ? Json(facts.flops) : Json(nullptr)},
               {"mfu_at_most", or_null(facts.mfu_at_most)},
               {"compute_seconds", facts.traffic.compute_seconds},
               {"step_seconds_at_least", facts.traffic.step_seconds_at_least},
               {"notes", facts.notes}});
}

std::string model_json(const Model& model) {
  Json runs = Json::array();
  for (const LayerRun& run : layer_runs(model)) {
    runs.push_back(
        {{"first", run.first},
         {"last", run.last},
         {"layers", run.layers},
         {"tensors_each", run.tensors},
         {"parameters_each", run.parameters},
         {"forward_flops_each", model.measured ? Json(nullptr) : Json(run.forward_flops)},
         {"forward_seconds_each", model.measured ? Json(seconds(run.forward)) : Json(nullptr)},
         {"backward_seconds_each", model.measured ? Json(seconds(run.backward)) : Json(nullptr)}});
  }
  Json elements = Json::object();  // by the names that tensors.distribution takes
  for (const Layer& layer : model.layers)
    for (const ParameterTensor& tensor : layer.parameters)
      elements[layer.name + "." + tensor.name] = tensor.numel;
  return dump(
      {{"schema", "ghostrank/model-facts/1"},
       {"name", model.name},
       {"kind", model.kind},
       {"architecture", model.architecture},
       {"tensors", model.tensors()},
       {"parameters", model.parameters()},
       {"forward_flops_per_sample", model.measured ? Json(nullptr) : Json(model.forward_flops())},
       {"layers", std::move(runs)},
       {"tensor_elements", std::move(elements)}});
}

}  // namespace ghostrank
