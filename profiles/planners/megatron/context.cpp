// Context parallelism of the attention core: every rank has a part of the sequence and needs the
// keys and values of all others.
//
//   p2p          a ring: the next block travels during attention to this one
//   all_gather   keys and values are gathered before, their gradients scattered after
//   a2a          Ulysses: all-to-alls swap heads for sequence, and back
//   a2a+p2p      the same swap among neighbours, whose groups form the ring
#include "profiles/planners/megatron/passes.h"

namespace ghostrank {
namespace {

// A step of a ring launches all kernels, each on a part of the keys.
GpuWork ring_step_of(const GpuWork& work, int ranks) { return {work.time / ranks, work.launching}; }

}  // namespace

// Sends and receives at the same time, after what is computed now; await_ring() waits for both.
// Transformer Engine makes a batch of the two only in rings of two ranks; else each is an isend of
// its own.
void PassWriter::ring_step(std::uint16_t group, int ranks, std::uint32_t label,
                           std::uint64_t elements) {
  out_.after(streams_.cp_send, streams_.compute);
  const Op::Within within = ranks > 2 ? Op::Within::pair : Op::Within::group;
  out_.send(streams_.cp_send, label, group, 1, plan_.activations, elements, within);
  out_.after(streams_.cp, streams_.compute);
  out_.recv(streams_.cp, label, group, -1, plan_.activations, elements, within);
}

void PassWriter::await_ring() {
  out_.after(streams_.compute, streams_.cp);
  out_.after(streams_.compute, streams_.cp_send);
}

void PassWriter::ring_forward(std::uint16_t group, int ranks, const Half& half) {
  for (int step = 0; step < ranks; ++step) {
    if (step + 1 < ranks) ring_step(group, ranks, kv_label_, k_elements_ + v_elements_);
    compute(half.label, ring_step_of(half.core.forward, ranks));
    await_ring();
  }
}

// Begins with the block that came last forward and ends with the rank's own, whose gradients then
// come home. A block that goes on takes its gradients along in the same message.
void PassWriter::ring_backward(std::uint16_t group, int ranks, const Half& half) {
  const std::uint64_t kv = k_elements_ + v_elements_;
  for (int step = 0; step < ranks; ++step) {
    const bool alone = step == 0 || step + 1 == ranks;
    ring_step(group, ranks, step == 0 ? kv_label_ : dkv_label_, alone ? kv : 2 * kv);
    compute(half.label, ring_step_of(half.core.input, ranks));
    await_ring();
  }
}

void PassWriter::cp_call(std::uint16_t group, Func func, std::uint64_t count) {
  out_.after(streams_.cp, streams_.compute);
  out_.collective(streams_.cp, func == Func::all_to_all ? heads_label_ : kv_label_, func, group,
                  plan_.activations, count);
  out_.after(streams_.compute, streams_.cp);
}

void PassWriter::share_keys_and_values(Func func) {
  for (const std::uint64_t elements : {k_elements_, v_elements_})
    cp_call(groups_.cp, func, elements);
}

void PassWriter::exchange_heads(std::uint16_t group, int ranks,
                                std::initializer_list<std::uint64_t> tensors) {
  for (const std::uint64_t elements : tensors) cp_call(group, Func::all_to_all, elements / ranks);
}

void PassWriter::core_forward(const Half& half) {
  if (plan_.cp == 1 || !half.has_core()) return compute(half.label, half.core.forward);
  const int inner = plan_.spec->parallel.cp_a2a;
  switch (plan_.spec->parallel.cp_comm) {
    case ContextComm::p2p:
      return ring_forward(groups_.cp, plan_.cp, half);
    case ContextComm::all_gather:
      share_keys_and_values(Func::all_gather);
      return compute(half.label, half.core.forward);
    case ContextComm::a2a:
      exchange_heads(groups_.cp, plan_.cp, {q_elements_, k_elements_, v_elements_});
      compute(half.label, half.core.forward);
      return exchange_heads(groups_.cp, plan_.cp, {o_elements_});
    case ContextComm::hierarchical:
      exchange_heads(groups_.cp_a2a, inner, {q_elements_, k_elements_, v_elements_});
      ring_forward(groups_.cp_p2p, plan_.cp / inner, half);
      return exchange_heads(groups_.cp_a2a, inner, {o_elements_});
  }
}

void PassWriter::core_backward(const Half& half) {
  if (plan_.cp == 1 || !half.has_core()) return compute(half.label, half.core.input);
  const int inner = plan_.spec->parallel.cp_a2a;
  switch (plan_.spec->parallel.cp_comm) {
    case ContextComm::p2p:
      return ring_backward(groups_.cp, plan_.cp, half);
    case ContextComm::all_gather:
      share_keys_and_values(Func::all_gather);
      compute(half.label, half.core.input);
      return share_keys_and_values(Func::reduce_scatter);
    case ContextComm::a2a:
      exchange_heads(groups_.cp, plan_.cp, {o_elements_});
      compute(half.label, half.core.input);
      return exchange_heads(groups_.cp, plan_.cp, {k_elements_, v_elements_, q_elements_});
    case ContextComm::hierarchical:
      exchange_heads(groups_.cp_a2a, inner, {o_elements_});
      ring_backward(groups_.cp_p2p, plan_.cp / inner, half);
      return exchange_heads(groups_.cp_a2a, inner, {k_elements_, v_elements_, q_elements_});
  }
}

}  // namespace ghostrank
