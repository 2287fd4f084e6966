// The compiled switch's jobs of OmniReduce: sums of the blocks that workers have.
#include "switch/wire/sparse.h"

#include "switch/compiled/compiled.h"
#include "switch/compiled/lanes.h"

namespace ghostrank::switchml {

void CompiledSwitch::receive_sparse(int port, const Packet& packet, Transmitter& out) {
  const auto at = static_cast<std::size_t>(port);
  if (loss_in_[at].lost()) {
    ++ports_[at].lost;
    return;
  }
  for (const Source& source : sources_[at]) {
    const JobPlan& plan = source.job->plan;
    const int slot = packet.slot - source.first_slot;
    if (plan.format == Format::omnireduce && source.ip == packet.source.ip && slot >= 0 &&
        slot < source.slots && (packet.elements == 0 || packet.elements == plan.elements))
      return sum_sparse(source, packet, out);
  }
  ++ports_[at].strangers;
}

void CompiledSwitch::sum_sparse(const Source& source, const Packet& packet, Transmitter& out) {
  Job& job = *source.job;
  const int slot = packet.slot - job.plan.first_slot;
  const Verdict verdict = receive_chunk(source, packet);
  if (verdict == Verdict::collect || verdict == Verdict::duplicate ||
      !job.pool.has_values(slot, packet.set))
    return;
  Packet result = packet;
  result.next = job.pool.next(slot, packet.set);
  result.elements = job.plan.elements;
  std::byte wire[4 * 256];
  store_lanes(wire, job.pool.values(slot, packet.set), job.plan.elements);
  result.values = wire;
  if (verdict == Verdict::retransmit) return send_block(job, source.worker, result, out);
  for (int w = 0; w < std::ssize(job.plan.workers); ++w) send_block(job, w, result, out);
}

void CompiledSwitch::send_block(Job& job, int number, const Packet& result, Transmitter& out) {
  const Worker& worker = job.plan.workers[static_cast<std::size_t>(number)];
  Packet packet = result;
  packet.source = {plan_.mac, plan_.ip, kSparsePort};
  packet.target = {worker.mac, worker.ip, job.plan.worker_port};
  send_packet(job, worker.port, packet, out);
}

}  // namespace ghostrank::switchml
