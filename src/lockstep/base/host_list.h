// Slurm's short form of lists of host names and of tasks per node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

// "node[01-03,07],login" is node01, node02, node03, node07, login. Brackets may
// occur several times in a name ("rack[1-2]n[0-3]"); the last ones count
// fastest. Throws ConfigError for text of another form and for more than 65536
// names.
std::vector<std::string> expand_host_list(std::string_view text);

// "2(x3),1" is 2, 2, 2, 1. Throws ConfigError likewise.
std::vector<int> expand_task_counts(std::string_view text);

}  // namespace lockstep::base
