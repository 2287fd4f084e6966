// The bytes that a gloo call must put on every connection, from our schedules and the rules of
// gloo's TCP transport (collectives/gloo/gloo.h).
//
// Units: bytes, by (source, target) host; rank r is host r. Threading: pure functions.
#pragma once

#include "collectives/schedule.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {

struct GlooBytes {
  Bytes data;     // of the collective's messages
  Bytes payload;  // TCP payload: data, preambles and notifications
};
GlooBytes gloo_bytes(const Collective& call);

void add(Bytes& to, const Bytes& bytes, double times = 1);

}  // namespace ghostrank::fidelity
