// A line of metrics.jsonl: what is read without a JSON tree is what a JSON
// reader finds.
#include "fuzz/target.h"
#include "lockstep/track/metric_line.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string line(fuzz::as_text(data, size));
  track::MetricLineParser plain;
  // A space in front is JSON all the same, and leaves the short way out.
  track::MetricLineParser tree;
  const std::string spaced = " " + line;
  const bool is_record = plain.parse(line);
  if (!tree.parse(spaced)) return 0;  // Numbers such as 01 are read leniently.
  fuzz::require(is_record);
  fuzz::require(plain.step() == tree.step());
  fuzz::require(plain.values().size() >= tree.values().size());
  return 0;
}
