#include "lockstep/launch/numa.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCpus = 8192;  // of any Linux machine

[[noreturn]] void refuse_binding(const std::string& reason) {
  throw ConfigError("--numa-binding: " + reason);
}

// The CPUs of this machine, reduced to the allowed ones.
class Topology {
 public:
  Topology(fs::path sysfs, CpuList allowed)
      : sysfs_(std::move(sysfs)), allowed_(std::move(allowed)) {}

  int node_of_gpu(const std::string& bus_id) const {
    const auto path = sysfs_ / "bus/pci/devices" / bus_id / "numa_node";
    const int64_t node = read_integer(path);
    if (node >= 0) return static_cast<int>(node);
    // Virtual machines do not show it; with one node it does not matter.
    if (!fs::exists(sysfs_ / "devices/system/node/node1")) return 0;
    refuse_binding(fmt::format(
        "this machine has no NUMA information for GPU {} ({} is {}); leave the "
        "option out",
        bus_id, path.string(), node));
  }

  // None for a node that has only memory.
  CpuList cpus_of_node(int node) const {
    const auto path =
        sysfs_ / fmt::format("devices/system/node/node{}/cpulist", node);
    CpuList result;
    if (fs::exists(path)) {
      std::ranges::set_intersection(read_list(path), allowed_,
                                    std::back_inserter(result));
    }
    return result;
  }

  CpuList cpus_of_socket(int node) const {
    const CpuList own = cpus_of_node(node);
    if (own.empty()) return own;
    const int64_t socket = socket_of(own.front());
    CpuList result;
    for (const int other : read_list(sysfs_ / "devices/system/node/possible")) {
      const CpuList cpus = cpus_of_node(other);
      if (cpus.empty() || socket_of(cpus.front()) != socket) continue;
      result.insert(result.end(), cpus.begin(), cpus.end());
    }
    std::ranges::sort(result);
    return result;
  }

  // The first CPU of its core, which names the core.
  int core_of(int cpu) const {
    return first_of(folder_of(cpu) / "topology/thread_siblings_list");
  }

  // The first CPU that shares its last-level cache, which names the cache.
  int cache_of(int cpu) const {
    std::error_code error;
    int64_t last_level = 0;
    fs::path last;
    const auto caches = folder_of(cpu) / "cache";
    for (const auto& entry : fs::directory_iterator(caches, error)) {
      if (!entry.path().filename().string().starts_with("index")) continue;
      const auto type = base::try_read_file(entry.path() / "type").value_or("");
      if (base::trim(type) != "Unified" && base::trim(type) != "Data") continue;
      const int64_t level = read_integer(entry.path() / "level");
      if (level <= last_level) continue;
      last_level = level;
      last = entry.path();
    }
    if (last.empty()) {
      refuse_binding(caches.string() + " lists no cache; use another mode");
    }
    return first_of(last / "shared_cpu_list");
  }

 private:
  fs::path folder_of(int cpu) const {
    return sysfs_ / fmt::format("devices/system/cpu/cpu{}", cpu);
  }

  int64_t socket_of(int cpu) const {
    return read_integer(folder_of(cpu) / "topology/physical_package_id");
  }

  static std::string read(const fs::path& path) {
    if (auto text = base::try_read_file(path))
      return std::string(base::trim(*text));
    refuse_binding(fmt::format(
        "this machine has no NUMA information ({} cannot be read); leave the "
        "option out",
        path.string()));
  }

  static int64_t read_integer(const fs::path& path) {
    const std::string text = read(path);
    if (const auto number = base::parse_integer(text)) return *number;
    refuse_binding(
        fmt::format("{} is '{}', not a number", path.string(), text));
  }

  static CpuList read_list(const fs::path& path) {
    const std::string text = read(path);
    if (auto list = parse_cpu_list(text)) return *std::move(list);
    refuse_binding(fmt::format("{} is '{}', not a list", path.string(), text));
  }

  static int first_of(const fs::path& path) {
    const CpuList list = read_list(path);
    if (!list.empty()) return list.front();
    refuse_binding(path.string() + " is empty");
  }

  fs::path sysfs_;
  CpuList allowed_;
};

// One of several workers, or GPUs without one, on a node.
struct NodePart {
  int node = 0;
  int position = 0;  // among those of the node
  int number = 1;    // of those
};

// With more workers than GPUs each worker has a part, so that exclusive stays
// exclusive.
std::vector<NodePart> find_parts(const NumaRequest& request,
                                 const Topology& topology) {
  std::vector<int> nodes;
  for (const std::string& bus_id : request.bus_ids) {
    nodes.push_back(topology.node_of_gpu(bus_id));
  }
  const size_t number =
      std::max(nodes.size(), static_cast<size_t>(request.num_workers));
  std::map<int, int> number_on;
  std::vector<NodePart> parts;
  for (size_t i = 0; i < number; ++i) {
    const int node = nodes[i % nodes.size()];
    parts.push_back({.node = node, .position = number_on[node]++});
  }
  for (NodePart& part : parts) part.number = number_on[part.node];
  parts.resize(static_cast<size_t>(request.num_workers));
  return parts;
}

// Whole cores, so that no core serves two workers; the first workers get one
// more when the cores do not divide.
CpuList choose_cores(const Topology& topology, const NodePart& part) {
  std::map<int, CpuList> cores;
  for (const int cpu : topology.cpus_of_node(part.node)) {
    cores[topology.core_of(cpu)].push_back(cpu);
  }
  const int number = static_cast<int>(cores.size());
  if (number < part.number) {
    refuse_binding(
        fmt::format("{} usable cores of NUMA node {} cannot be divided among "
                    "{} GPUs or processes; use the mode node",
                    number, part.node, part.number));
  }
  const int each = number / part.number;
  const int left = number % part.number;
  const int begin = part.position * each + std::min(part.position, left);
  const int size = each + (part.position < left ? 1 : 0);
  CpuList result;
  for (auto core = std::next(cores.begin(), begin);
       core != std::next(cores.begin(), begin + size); ++core) {
    result.insert(result.end(), core->second.begin(), core->second.end());
  }
  std::ranges::sort(result);
  return result;
}

// Groups with more usable CPUs first; they are given out in turn.
CpuList choose_complex(const Topology& topology, const NodePart& part) {
  std::map<int, CpuList> by_cache;
  for (const int cpu : topology.cpus_of_node(part.node)) {
    by_cache[topology.cache_of(cpu)].push_back(cpu);
  }
  if (by_cache.empty()) return {};
  std::map<std::pair<int, int>, CpuList> groups;
  for (auto& [cache, cpus] : by_cache) {
    groups[{-static_cast<int>(cpus.size()), cache}] = std::move(cpus);
  }
  const int turn = part.position % static_cast<int>(groups.size());
  return std::next(groups.begin(), turn)->second;
}

CpuList choose_for(NumaMode mode, const Topology& topology,
                   const NodePart& part) {
  switch (mode) {
    case NumaMode::kNode: return topology.cpus_of_node(part.node);
    case NumaMode::kSocket: return topology.cpus_of_socket(part.node);
    case NumaMode::kExclusive: return choose_cores(topology, part);
    case NumaMode::kCoreComplex: return choose_complex(topology, part);
  }
  return {};
}

}  // namespace

NumaMode parse_numa_mode(std::string_view text) {
  if (text == "node") return NumaMode::kNode;
  if (text == "socket") return NumaMode::kSocket;
  if (text == "exclusive") return NumaMode::kExclusive;
  if (text == "core-complex") return NumaMode::kCoreComplex;
  throw ConfigError(
      fmt::format("--numa-binding '{}' must be node, socket, exclusive or "
                  "core-complex",
                  text));
}

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  CpuList result;
  if (base::trim(text).empty()) return result;
  for (const std::string& part : base::split(base::trim(text), ',')) {
    const auto bounds = base::split(part, '-');
    const auto first = base::parse_integer(bounds.front());
    const auto last = base::parse_integer(bounds.back());
    if (bounds.size() > 2 || !first || !last || *first > *last || *first < 0 ||
        *last >= kMostCpus) {
      return std::nullopt;
    }
    for (int64_t cpu = *first; cpu <= *last; ++cpu) {
      result.push_back(static_cast<int>(cpu));
    }
  }
  std::ranges::sort(result);
  return result;
}

CpuList find_allowed_cpus() {
  std::array<cpu_set_t, kMostCpus / CPU_SETSIZE> set{};
  CpuList result;
  if (sched_getaffinity(0, sizeof(set), set.data()) != 0) return result;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof(set), set.data())) result.push_back(cpu);
  }
  return result;
}

std::vector<CpuList> choose_near_cpus(const NumaRequest& request,
                                      const fs::path& sysfs) {
  LOCKSTEP_CHECK(!request.bus_ids.empty(), "no GPU");
  const Topology topology(sysfs, request.allowed);
  std::vector<CpuList> result;
  for (const NodePart& part : find_parts(request, topology)) {
    // Checked first: every mode starts from the node.
    if (topology.cpus_of_node(part.node).empty()) {
      refuse_binding(fmt::format(
          "NUMA node {} of GPU {} has no CPU that the launcher may "
          "use; widen its CPU set or leave the option out",
          part.node, request.bus_ids[result.size() % request.bus_ids.size()]));
    }
    result.push_back(choose_for(request.mode, topology, part));
  }
  return result;
}

}  // namespace lockstep::launch
