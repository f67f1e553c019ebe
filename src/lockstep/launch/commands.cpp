#include "lockstep/launch/commands.h"

#include <array>

namespace lockstep::launch {
namespace {

constexpr auto kCommands = std::to_array<Command>({
    {"train", "RECIPE [flags]", "train a recipe, on one GPU or several"},
    {"eval", "RECIPE [flags]", "evaluate a checkpoint"},
    {"sample", "RECIPE [flags]", "draw samples from a checkpoint"},
    {"prepare", "RECIPE [flags]", "bring data into the form a recipe reads"},
    {"recipes", "", "list the recipes"},
    {"inspect", "FILE...", "show what a checkpoint holds"},
    {"export", "FROM TO [--key NAME]", "write a checkpoint in another form"},
    {"plot", "RUN [RUN...] [-o FILE]",
     "draw a run's curves and samples, or compare runs"},
    {"runs", "[FOLDER|show RUN|diff A B]", "list runs, show one, compare two"},
    {"board", "[FOLDER] [--port N]",
     "serve a web page over runs, live curves and ranks"},
    {"doctor", "[train RECIPE flags]",
     "check machine, and a training, before it runs"},
    {"verify-resume", "[--steps N] RECIPE",
     "train, stop, resume, and compare the bits"},
    {"run", "[options] PROGRAM [args...]",
     "start any program once per GPU or CPU slot"},
    {"launch", "[options] PROGRAM [args...]",
     "the same, as torch.distributed.launch: adds --local-rank"},
    {"completion", "bash|zsh|fish", "print the completions of a shell"},
    {"version", "", "print the versions of Lockstep, torch, CUDA and NCCL"},
    {"--cmake-dir", "", "print the folder of the CMake package"},
    {"--torch-dir", "", "print the folder of the torch that is used"},
    {"help", "[COMMAND]", "print this text, or the help of a command"},
});

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::string commands_help() {
  constexpr size_t kIndent = 36;
  std::string text = "usage: lockstep COMMAND ...\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::string left = std::string("  ") + command.name + " " + command.usage;
    left.resize(kIndent, ' ');
    text += left + command.help + "\n";
  }
  return text +
         "\n  lockstep train RECIPE --help   flags of a recipe\n"
         "  lockstep train --help          options of launching\n"
         "  lockstep run --help            the same, for any program\n";
}

}  // namespace lockstep::launch
