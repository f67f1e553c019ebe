#include "lockstep/engine/precision.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdlib>

#include "lockstep/error.h"
#include "lockstep/random.h"
#include "lockstep/tensor/device.h"

namespace lockstep::engine {
namespace {

Precision mixed(std::string name, at::ScalarType dtype) {
  return {.name = std::move(name),
          .autocast = dtype,
          .scales_loss = dtype == at::kHalf};
}

// CPUs compute fp16 slowly or not at all; bf16 has the range of fp32.
Precision fp16_on(c10::Device device, bool was_asked_by_name) {
  if (!device.is_cpu()) return mixed("fp16", at::kHalf);
  if (was_asked_by_name) return mixed("fp16", at::kHalf);
  Precision precision = mixed("bf16", at::kBFloat16);
  precision.note = "mixed precision on the CPU is bf16";
  return precision;
}

Precision bf16_on(c10::Device device) {
  if (tensor::supports_bf16(device)) return mixed("bf16", at::kBFloat16);
  Precision precision = mixed("fp16", at::kHalf);
  precision.note = tensor::device_name(device) +
                   " has no bf16: fp16 with loss scaling is used instead";
  return precision;
}

}  // namespace

Precision resolve_precision(const TrainConfig& config, const Options& options,
                            c10::Device device) {
  const bool was_given = options.was_given("precision");
  const bool was_amp_given = options.was_given("use_amp");
  std::string name = config.precision;
  if (!was_given && was_amp_given) name = config.use_amp ? "fp16" : "fp32";
  if (name == "auto") name = device.is_cpu() ? "fp32" : "bf16";
  if (name == "auto16") name = device.is_cpu() ? "fp32" : "fp16";
  if (name == "fp16") return fp16_on(device, was_given);
  if (name == "bf16") return bf16_on(device);
  if (name == "tf32") return {.name = "tf32", .allows_tf32 = true};
  if (name == "fp64") return {.name = "fp64", .dtype = at::kDouble};
  return {};
}

void apply_precision(const Precision& precision) {
  at::globalContext().setAllowTF32CuBLAS(precision.allows_tf32);
  at::globalContext().setAllowTF32CuDNN(precision.allows_tf32);
}

void seed_everything(int64_t seed) {
  const auto seed_device = [seed](c10::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(static_cast<uint64_t>(seed));
  };
  seed_device(c10::Device(c10::DeviceType::CPU));
  for (int i = 0; i < tensor::num_usable_gpus(); ++i) {
    seed_device({c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(i)});
  }
}

void seed_dropout(int64_t seed, int rank) {
  seed_everything(static_cast<int64_t>(
      sample_seed(static_cast<uint64_t>(seed), /*epoch=*/-1, rank)));
}

void require_determinism() {
  // cuBLAS reads it later, when it creates its handle.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

void choose_kernels(BatchShapes shapes) {
  at::globalContext().setBenchmarkCuDNN(shapes == BatchShapes::kStatic);
  at::globalContext().setSDPUseCuDNN(shapes != BatchShapes::kDynamic);
}

}  // namespace lockstep::engine
