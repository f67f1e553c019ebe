// Lockstep's side of the benchmark of large weights; python/llama_peer.py is
// the peer of encode.
//
//   weights_worker write safetensors|torch FOLDER SIZE
//   weights_worker load FOLDER SIZE cpu|cuda
//   weights_worker encode SIZE cpu|cuda BATCH TOKENS [FOLDER]
//
// SIZE: llama3_8b, llama_tiny, or mebibytes of a LLaMA of about so much. write:
// bfloat16 weights, safetensors in shards. load: into a model that has no
// memory yet; peak_share is the most host memory that was used above what the
// process held before, as a part of the files. encode: sentences per second of
// weights from the folder, or random ones.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/models/llama/llama.h"
#include "lockstep/nn/weights.h"
#include "lockstep/program.h"
#include "lockstep/tensor/device.h"

namespace {

namespace fs = std::filesystem;
using lockstep::llama::Llama;
using Words = std::vector<std::string>;

constexpr int64_t kShardBytes = int64_t{1} << 29;
constexpr int kWarm = 10;
constexpr int kBlock = 20;
constexpr int kBlocks = 3;

lockstep::llama::LlamaConfig config_of(const std::string& size) {
  const auto mebibytes = lockstep::base::parse_integer(size);
  if (!mebibytes) return lockstep::llama::llama_preset(size);
  lockstep::llama::LlamaConfig config{.vocab_size = 32'768,
                                      .hidden_size = 2048,
                                      .mlp_size = 5632,
                                      .num_layers = 1,
                                      .num_heads = 16,
                                      .num_kv_heads = 4};
  // A layer has 43 MiB of bfloat16 numbers, the embedding 128.
  const int64_t layer_bytes =
      2 * config.hidden_size *
      (2 * config.hidden_size + 2 * 4 * config.head_size + 3 * config.mlp_size);
  const int64_t rest =
      (*mebibytes << 20) - 2 * config.vocab_size * config.hidden_size;
  config.num_layers = std::max<int64_t>(1, rest / layer_bytes);
  return config;
}

c10::Device device_of(const std::string& word) {
  return lockstep::tensor::take_device(
      word == "cuda" ? lockstep::DeviceChoice::kCuda
                     : lockstep::DeviceChoice::kCpu,
      0, lockstep::base::process_environment());
}

// Drawn once and repeated: billions of draws would take minutes.
torch::Tensor some_weights(at::IntArrayRef shape) {
  static const torch::Tensor kDraws =
      (0.02 * torch::randn({1 << 20})).to(at::kBFloat16);
  const int64_t count = c10::multiply_integers(shape);
  const int64_t times = (count + kDraws.numel() - 1) / kDraws.numel();
  return kDraws.repeat({times}).narrow(0, 0, count).clone().view(shape);
}

class ShardWriter {
 public:
  explicit ShardWriter(fs::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& name, const torch::Tensor& tensor) {
    if (num_bytes_ > 0 && num_bytes_ + tensor.nbytes() > kShardBytes) write();
    shard_[name] = tensor;
    num_bytes_ += static_cast<int64_t>(tensor.nbytes());
    index_ += fmt::format("{}\"{}\": \"{}\"", index_.empty() ? "" : ",\n", name,
                          file_name());
  }

  void finish() {
    write();
    lockstep::base::write_file_atomically(
        folder_ / "model.safetensors.index.json",
        fmt::format("{{\"weight_map\": {{{}}}}}", index_));
  }

 private:
  std::string file_name() const {
    return fmt::format("model-{:05}.safetensors", num_shards_ + 1);
  }
  void write() {
    lockstep::save_safetensors(folder_ / file_name(), shard_);
    shard_ = lockstep::Tree::dict();
    num_bytes_ = 0;
    ++num_shards_;
  }

  fs::path folder_;
  lockstep::Tree shard_ = lockstep::Tree::dict();
  int64_t num_bytes_ = 0;
  int num_shards_ = 0;
  std::string index_;
};

void write_weights(const Words& words) {
  const fs::path folder = words.at(2);
  const Llama model(config_of(words.at(3)));
  lockstep::base::make_output_folder(folder);
  ShardWriter shards(folder);
  lockstep::Tree whole;
  for (const auto& item : model.named_parameters()) {
    const torch::Tensor weights = some_weights(item.value().sizes());
    if (words.at(1) == "torch") {
      whole["model." + item.key()] = weights;
    } else {
      shards.add("model." + item.key(), weights);
    }
  }
  if (words.at(1) == "torch") {
    lockstep::save_checkpoint(folder / "model.pt", whole);
  } else {
    shards.finish();
  }
  fmt::print("{{}}\n");
}

int64_t status_bytes(std::string_view key) {
  for (const auto& line : lockstep::base::split(
           lockstep::base::read_file("/proc/self/status"), '\n')) {
    if (!line.starts_with(key)) continue;
    const auto text =
        lockstep::base::trim(std::string_view(line).substr(key.size() + 1));
    return *lockstep::base::parse_integer(
               lockstep::base::trim(text.substr(0, text.find(' ')))) *
           1024;
  }
  throw lockstep::IoError("/proc/self/status has no such line");
}

int64_t files_bytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

void fill(Llama& model, const fs::path& folder, c10::Device device) {
  lockstep::checkpoint::FillConfig config{.device = device};
  config.name_in_file = [](const std::string& name) {
    return std::optional("model." + name);
  };
  lockstep::checkpoint::fill_module(
      model, lockstep::checkpoint::WeightFiles(folder), config);
}

void measure_load(const Words& words) {
  const fs::path folder = words.at(1);
  const c10::Device device = device_of(words.at(3));
  torch::zeros({1}, device).add_(1);  // Its context takes memory too.
  Llama model(config_of(words.at(2)));
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak begins anew.
  const int64_t before = status_bytes("VmRSS");
  const int64_t begin = lockstep::base::monotonic_ns();
  fill(model, folder, device);
  lockstep::tensor::synchronize(device);
  const double seconds =
      lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
  const int64_t peak = status_bytes("VmHWM") - before;
  const int64_t bytes = files_bytes(folder);
  fmt::print("{{\"peak_share\": {:.4f}, \"load_s\": {:.3f}, \"bytes\": {}}}\n",
             static_cast<double>(peak) / static_cast<double>(bytes), seconds,
             bytes);
}

void fill_on_device(Llama& model, c10::Device device) {
  lockstep::nn::materialize(model,
                            torch::TensorOptions(device).dtype(at::kBFloat16));
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 1) {
      parameter.fill_(1);
    } else {
      parameter.normal_(0, 0.02);
    }
  }
}

void measure_encode(const Words& words) {
  const c10::Device device = device_of(words.at(2));
  const int64_t batch = *lockstep::base::parse_integer(words.at(3));
  const int64_t tokens = *lockstep::base::parse_integer(words.at(4));
  Llama model(config_of(words.at(1)));
  const int64_t begin = lockstep::base::monotonic_ns();
  if (words.size() > 5) {
    fill(model, words[5], device);
  } else {
    fill_on_device(model, device);
  }
  lockstep::tensor::synchronize(device);
  const double build =
      lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
  model.eval();
  const c10::InferenceMode inference;
  const torch::Tensor ids =
      torch::randint(model.config().vocab_size, {batch, tokens}).to(device);
  const torch::Tensor mask = torch::ones_like(ids, at::kBool);
  const auto run = [&](int count) {
    const int64_t start = lockstep::base::monotonic_ns();
    for (int i = 0; i < count; ++i) model.forward(ids, mask);
    lockstep::tensor::synchronize(device);
    return lockstep::base::seconds_between(start,
                                           lockstep::base::monotonic_ns()) /
           count;
  };
  TORCH_CHECK(model.forward(ids, mask).isfinite().all().item<bool>());
  run(kWarm);
  std::vector<double> seconds;
  for (int i = 0; i < kBlocks; ++i) seconds.push_back(run(kBlock));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[kBlocks / 2];
  const auto count = static_cast<double>(batch);
  fmt::print(
      "{{\"rate\": {:.3f}, \"ms\": {:.3f}, \"tokens_per_s\": {:.1f}, "
      "\"build_s\": {:.2f}, \"peak_bytes\": {}}}\n",
      count / median, 1e3 * median,
      count * static_cast<double>(tokens) / median, build,
      lockstep::tensor::device_memory(device).peak_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const Words words(argv + 1, argv + argc);
    const std::string what = words.empty() ? "" : words[0];
    if (what == "write" && words.size() == 4) return write_weights(words);
    if (what == "load" && words.size() == 4) return measure_load(words);
    if (what == "encode" && words.size() >= 5) return measure_encode(words);
    throw lockstep::ConfigError(
        "usage: weights_worker write safetensors|torch FOLDER SIZE | load "
        "FOLDER SIZE cpu|cuda | encode SIZE cpu|cuda BATCH TOKENS [FOLDER]");
  });
}
