// Lockstep's side of python/ddp_reference.py: the same modules, data, cases and
// files.
#include <torch/torch.h>

#include <fstream>

#include "lockstep/lockstep.h"

namespace {

constexpr int kSteps = 20;
constexpr int64_t kWidth = 512;
constexpr int64_t kBatch = 8;

using torch::Tensor;
using torch::nn::Linear;

struct Mlp : torch::nn::Module {
  Linear a{64, kWidth}, b{kWidth, kWidth}, c{kWidth, kWidth}, d{kWidth, 10};
  Mlp() {
    register_module("a", a);
    register_module("b", b);
    register_module("c", c);
    register_module("d", d);
  }
  Tensor forward(Tensor x) {
    x = torch::tanh(a(x));
    x = torch::tanh(b(x));
    x = torch::tanh(c(x));
    return d(x);
  }
};

struct Branches : torch::nn::Module {
  Linear trunk{64, kWidth}, left{kWidth, 10}, right{kWidth, 10};
  Branches() {
    register_module("trunk", trunk);
    register_module("left", left);
    register_module("right", right);
  }
  Tensor forward(Tensor x, bool use_left) {
    x = torch::tanh(trunk(x));
    return use_left ? left(x) : right(x);
  }
};

struct Normed : torch::nn::Module {
  Linear a{64, kWidth};
  torch::nn::BatchNorm1d norm{kWidth};
  Linear b{kWidth, kWidth}, c{kWidth, 10};
  Normed() {
    register_module("a", a);
    register_module("norm", norm);
    register_module("b", b);
    register_module("c", c);
  }
  Tensor forward(Tensor x) {
    x = torch::tanh(norm(a(x)));
    return c(torch::tanh(b(x)));
  }
};

struct Data {
  Tensor inputs;
  Tensor labels;
};

Data batch_of(int rank, int step) {
  auto generator = at::detail::createCPUGenerator(1000 * rank + step);
  auto inputs = torch::randn({kBatch, 64}, generator);
  auto labels = torch::randint(10, {kBatch}, generator, torch::kLong);
  return {inputs, labels};
}

bool is(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

lockstep::DdpConfig config_of(const std::string& name) {
  lockstep::DdpConfig config;
  if (name != "default_buckets") config.bucket_cap_mb = 1;
  config.gradient_as_bucket_view =
      is(name, {"bucket_view", "bucket_view_kept"});
  config.find_unused_parameters = is(name, {"unused", "join_unused"});
  config.static_graph = name == "static_graph";
  if (name == "fp16") config.compression = lockstep::Compression::kFp16;
  if (name == "bf16") config.compression = lockstep::Compression::kBf16;
  return config;
}

template <typename Net>
void train(const std::string& name, const std::shared_ptr<Net>& net,
           const lockstep::World& world) {
  lockstep::DistributedDataParallel<Net> ddp(net, world, config_of(name));
  std::vector<Tensor> trained;
  for (const Tensor& parameter : net->parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  torch::optim::SGD optimizer(
      trained, torch::optim::SGDOptions(/*lr=*/0.05).momentum(0.9));

  const auto step = [&](int number) {
    const Data data = batch_of(world.rank(), number);
    Tensor output;
    if constexpr (std::is_same_v<Net, Branches>) {
      output = ddp(data.inputs, (number + world.rank()) % 2 == 0);
    } else {
      output = ddp(data.inputs);
    }
    torch::nn::functional::cross_entropy(output, data.labels).backward();
  };
  const auto update = [&] {
    optimizer.step();
    net->zero_grad(/*set_to_none=*/name != "bucket_view_kept");
  };

  if (name == "no_sync") {
    for (int number = 0; number < kSteps; ++number) {
      const auto quiet = ddp.no_sync(number % 4 != 3);
      step(number);
      if (number % 4 == 3) update();
    }
  } else if (name.starts_with("join")) {
    ddp.join(
        [&] {
          for (int number = 0; number < kSteps - 3 * world.rank(); ++number) {
            step(number);
            update();
          }
        },
        {.divide_by_initial_world_size = name != "join_effective"});
  } else {
    for (int number = 0; number < kSteps; ++number) {
      step(number);
      update();
    }
  }
}

void write(const std::string& path, const torch::nn::Module& module) {
  std::ofstream file(path, std::ios::binary);
  const auto append = [&](const Tensor& tensor) {
    const Tensor packed = tensor.detach().contiguous();
    file.write(static_cast<const char*>(packed.const_data_ptr()),
               static_cast<std::streamsize>(packed.nbytes()));
  };
  for (const Tensor& tensor : module.parameters()) append(tensor);
  for (const Tensor& tensor : module.buffers()) append(tensor);
}

template <typename Net>
void run(const std::string& name, const std::string& out,
         const lockstep::World& world) {
  torch::manual_seed(42);
  const auto net = std::make_shared<Net>();
  if constexpr (std::is_same_v<Net, Mlp>) {
    if (name == "frozen") net->b->weight.requires_grad_(false);
  }
  train(name, net, world);
  write(out + "/" + name + ".rank" + std::to_string(world.rank()) + ".bin",
        *net);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const auto world = lockstep::World::from_environment(
        {.device = lockstep::DeviceChoice::kCpu});
    const std::string out = argv[1];
    for (int i = 2; i < argc; ++i) {
      const std::string name = argv[i];
      if (name == "unused") {
        run<Branches>(name, out, world);
      } else if (is(name, {"batchnorm", "join_buffers"})) {
        run<Normed>(name, out, world);
      } else {
        run<Mlp>(name, out, world);
      }
    }
  });
}
