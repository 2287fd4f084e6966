// The sections of one result's page, in the order of the page. Each is html, empty where the result
// holds nothing for it.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "tools/report/page/pictures.h"
#include "tools/report/stored_run.h"

namespace ghostrank {

std::string trust_line(const StoredRun& run);  // first: how far to trust all that follows
std::string cards(const StoredRun& run);       // the figures that are asked for first
std::string step_section(const StoredRun& run);
std::string limits_section(const StoredRun& run);
std::string jobs_section(const StoredRun& run);
std::string collectives_section(const StoredRun& run);
std::string traffic_section(const StoredRun& run);
std::string network_section(const StoredRun& run);
std::string servers_section(const StoredRun& run);
std::string trust_section(const StoredRun& run);
std::string notes_section(const StoredRun& run);
std::string origin_section(const StoredRun& run);  // command, versions, machines, every key

StepBar step_bar(const StoredRun& run, const std::string& name);
StepDots step_dots_of(const StoredRun& run, const std::string& name);

}  // namespace ghostrank
