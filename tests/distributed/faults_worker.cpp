// A training that one rank leaves in a given way at a given step.
//
//   faults_worker FAULT RANK   (FAULT: none, kill, throw, odd, exit0, stop,
//   sleep, vote, crash, memory, tensor, desync)
#include <torch/torch.h>

#include <csignal>

#include "lockstep/base/status.h"
#include "lockstep/comm/vote.h"
#include "lockstep/lockstep.h"

// Outside of a namespace, so that the report has a plain name.
[[gnu::noinline]] void write_to_nowhere() {
  volatile int* volatile nowhere = reinterpret_cast<int*>(16);
  *nowhere = 1;
}

namespace {

constexpr int kFaultAt = 5;
constexpr int kSteps = 400;

void commit(const std::string& fault) {
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "throw") throw lockstep::IoError("image.png: disk error");
  if (fault == "crash") write_to_nowhere();
  if (fault == "memory") ::operator delete(::operator new(size_t{1} << 60));
  if (fault == "tensor") torch::empty({int64_t{1} << 50});
  if (fault == "exit0") std::_Exit(0);
  if (fault == "stop") std::raise(SIGSTOP);
  if (fault == "odd") throw std::runtime_error("bad value for 'timeout'");
  if (fault == "sleep") std::this_thread::sleep_for(std::chrono::seconds(60));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc != 3)
      throw lockstep::ConfigError("usage: faults_worker FAULT RANK");
    const auto world = lockstep::World::from_environment(
        {.device = lockstep::DeviceChoice::kCpu});
    auto net = std::make_shared<torch::nn::LinearImpl>(64, 64);
    lockstep::DistributedDataParallel<torch::nn::LinearImpl> ddp(net, world);
    torch::optim::SGD optimizer(net->parameters(), 0.01);
    for (int step = 0; step < kSteps; ++step) {
      world.status().set_step(step);
      if (step == kFaultAt && world.rank() == std::stoi(argv[2])) {
        commit(argv[1]);
        // The others exchange gradients.
        auto extra = torch::ones({3});
        if (argv[1] == std::string("desync")) world.all_reduce(extra);
      }
      ddp(torch::randn({8, 64})).square().mean().backward();
      optimizer.step();
      net->zero_grad();
    }
    auto vote = world.make_vote();
    if (argv[1] == std::string("vote") && world.rank() == std::stoi(argv[2])) {
      commit("sleep");
    }
    vote.post(0);
    vote.read();
    if (world.is_main()) std::puts("all steps done");
  });
}
