// A plugin that was built against an older schedule.h: the loader must not read its rows.
#include "collectives/plugin.h"

extern "C" const ghostrank::Plugin* ghostrank_plugin() {
  static ghostrank::Plugin plugin;
  plugin.abi.schedule = ghostrank::kScheduleAbi - 1;
  plugin.algorithms = {reinterpret_cast<const ghostrank::Algorithm*>(16), 1000};
  return &plugin;
}
