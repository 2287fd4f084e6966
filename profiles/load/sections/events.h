// The key `events`: what happens at given times of a job (profiles/job/events.h).
//
// Threading: pure functions.
#pragma once

#include <memory>
#include <span>

#include "profiles/input/keys.h"
#include "profiles/job/events.h"
#include "profiles/job/job.h"

namespace ghostrank {

std::span<const Key> event_keys();  // of an entry of `events`

// The events of a job whose cluster, topology, fabric and `jobs` are read; null: it has none.
// Throws Error(usage) for events that are malformed, or that its fabric cannot play.
std::shared_ptr<const JobEvents> read_events(const Setting& setting, const JobSpec& spec);

}  // namespace ghostrank
