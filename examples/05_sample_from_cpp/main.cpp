// Samples from a checkpoint in a program of your own: images of one class.
//
//   05_sample_from_cpp RECIPE CHECKPOINT FOLDER [FLAGS OF lockstep sample]
//   05_sample_from_cpp dit runs/dit/model.pth stars --ema 0 --classes 7
#include <lockstep/error.h>
#include <lockstep/program.h>
#include <lockstep/registry.h>
#include <lockstep/sampler.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc < 4) {
      throw lockstep::ConfigError(
          "usage: 05_sample_from_cpp RECIPE CHECKPOINT FOLDER [FLAGS]");
    }
    lockstep::Sampler sampler(lockstep::make_recipe(argv[1]), argv[2],
                              {argv + 4, argv + argc});
    std::vector<int64_t> items(size_t(sampler.num_items()));
    std::iota(items.begin(), items.end(), 0);
    const auto samples = sampler.sample(items, sampler.seed());
    for (const auto& file : sampler.render(samples)) {
      const auto path = std::filesystem::path(argv[3]) / file.name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << file.bytes;
      std::cout << path.string() << "\n";
    }
  });
}
