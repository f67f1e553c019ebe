// The settings of --rdzv-conf, by torchrun's names.
#pragma once

#include <string>

namespace lockstep::launch {

struct RendezvousSettings {
  double join_timeout = 600;       // for all nodes to be there, in seconds
  double last_call_timeout = 30;   // for more than MIN of MIN:MAX, in seconds
  double keep_alive_interval = 5;  // between signs of life, in seconds
  int keep_alive_max_attempt = 3;  // intervals without one: a node is lost
};

// "join_timeout=60,keep_alive_interval=2". "timeout", the name of the static
// back end, is join_timeout. Settings of torchrun's that have no meaning here
// are accepted. Throws ConfigError for all others and for bad values.
RendezvousSettings parse_rendezvous_settings(const std::string& text);

}  // namespace lockstep::launch
