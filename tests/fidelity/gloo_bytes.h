// What a call of gloo's must have put on every connection, from our schedules and the rules of its
// TCP transport (collectives/gloo/gloo.h).
//
// Units: bytes, by (source, target) host; rank r is host r. Threading: pure functions.
#pragma once

#include "collectives/schedule.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {

struct GlooBytes {
  Bytes data;     // of the collective's messages
  Bytes payload;  // with preambles and notifications: what TCP carries
};
GlooBytes gloo_bytes(const Collective& call);

void add(Bytes& to, const Bytes& bytes, double times = 1);

}  // namespace ghostrank::fidelity
