// A trained recipe inside a program of your own: a checkpoint that makes
// samples. examples/05_sample_from_cpp is such a program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/recipe.h"

namespace lockstep {

class LOCKSTEP_EXPORT Sampler {
 public:
  // The settings are those that the checkpoint was trained with; `flags` are
  // those of `lockstep sample`: {"--ema", "0", "--classes", "7"}. Throws
  // ConfigError, FormatError and IoError.
  Sampler(std::unique_ptr<Recipe> recipe,
          const std::filesystem::path& checkpoint,
          const std::vector<std::string>& flags = {});
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Of one sampling as `lockstep sample` makes it; there may be more.
  int64_t num_items() const;

  uint64_t seed() const;  // That of the flags.

  // One row per item, on the CPU: what the recipe samples. An item depends on
  // its number and the seed alone.
  at::Tensor sample(std::span<const int64_t> items, uint64_t seed);

  // All items of one sampling, in order, as the files of the recipe.
  std::vector<OutputFile> render(const at::Tensor& items);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
