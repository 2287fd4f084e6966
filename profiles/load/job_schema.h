// The table of a job file's keys. The loader, --print-config, docs/job-format.md and
// profiles/schema/job.schema.json all read it.
#pragma once

#include <span>
#include <string>

#include "profiles/input/keys.h"
#include "profiles/load/keys/tables.h"

namespace ghostrank {

std::span<const Key> job_keys();

// JSON Schemas (draft-07), equal to the files in profiles/schema/.
std::string job_json_schema();
std::string model_json_schema();
std::string device_json_schema();

// The tables of docs/job-format.md, in Markdown.
std::string job_format_markdown();

}  // namespace ghostrank
