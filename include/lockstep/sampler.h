// Draws samples from a checkpoint inside another program, such as
// examples/05_sample_from_cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/output_file.h"
#include "lockstep/recipe.h"

namespace lockstep {

class LOCKSTEP_EXPORT Sampler {
 public:
  // The settings are those that the checkpoint was trained with; `flags` are
  // those of `lockstep sample`: {"--ema", "0", "--classes", "7"}. Throws
  // ConfigError, also when the recipe cannot sample, FormatError and IoError.
  Sampler(std::unique_ptr<Recipe> recipe,
          const std::filesystem::path& checkpoint,
          const std::vector<std::string>& flags = {});
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Items per sampling of `lockstep sample`; larger numbers are valid, too.
  int64_t num_items() const;

  uint64_t seed() const;  // Set by the flags.

  // One row per item, on the CPU, as Sampling::sample(). An item depends only
  // on its number and the seed.
  at::Tensor sample(std::span<const int64_t> items, uint64_t seed);

  // All items of one sampling, in order, as files.
  std::vector<OutputFile> render(const at::Tensor& items);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
