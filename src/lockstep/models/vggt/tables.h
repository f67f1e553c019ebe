// Position tables of VGGT: they depend on sizes alone.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::vggt {

struct GridSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const GridSize&) const = default;
};

// Sinusoidal embedding of a pixel's position in its image: the first half of
// the channels encodes the column, the second the row.
struct MapWaves {
  at::Tensor of_column = {};  // [channels / 2, 1, width]
  at::Tensor of_row = {};     // [channels / 2, height, 1]
};

// In double, on the CPU. aspect: width / height of the image, whose diagonal
// has length 2.
MapWaves make_map_waves(const GridSize& map, int64_t channels, double aspect);

// Adds the waves to maps [F, channels, height, width], in place.
void add_map_waves(const at::Tensor& maps, const MapWaves& waves);

MapWaves moved_to(const MapWaves& waves, const at::TensorOptions& options);

// Caches a table per size, type and device. Not thread-safe.
template <typename Table>
class TablePerSize {
 public:
  struct Key {
    GridSize size = {};
    // Set if the table depends on them.
    int64_t channels = 0;
    GridSize aspect = {};
    c10::ScalarType dtype = c10::ScalarType::Float;
    c10::Device device = c10::Device(c10::DeviceType::CPU);
    bool operator==(const Key&) const = default;
  };

  const Table& get(const Key& key, const std::function<Table()>& make) {
    for (const auto& [known, table] : tables_) {
      if (known == key) return *table;
    }
    tables_.emplace_back(
        key, std::make_unique<Table>(moved_to(
                 make(), at::TensorOptions(key.device).dtype(key.dtype))));
    return *tables_.back().second;
  }

 private:
  // Pointers, so that returned references stay valid.
  std::vector<std::pair<Key, std::unique_ptr<Table>>> tables_;
};

}  // namespace lockstep::vggt
