#include "tools/report/job_hash.h"

#include "profiles/input/content_hash.h"
#include "profiles/load/json.h"

namespace ghostrank {

std::string job_hash(const std::string& config_json, const NamedFiles& files,
                     std::optional<std::uint64_t> seed) {
  if (!seed) return content_hash_text(with_contents(config_json, files));
  Json config = Json::parse(config_json);
  config.at("run").at("seed") = *seed;
  return content_hash_text(with_contents(json_text(config, 2), files));
}

std::string played_hash(const Json& result) {
  NamedFiles files;
  for (const auto& [name, file] : result.at("files").items())
    files[name] = {file.at("path").get<std::string>(), file.at("hash").get<std::string>()};
  return job_hash(json_text(result.at("config"), 2), files);
}

std::string another_job(const std::string& what) {
  return "played another job than the " + what +
         " has loaded: the job's file, or one that it names, has changed since; start the " + what +
         " again";
}

}  // namespace ghostrank
