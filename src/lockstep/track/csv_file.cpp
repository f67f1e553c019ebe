#include "lockstep/track/csv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/track/metrics_file.h"

namespace lockstep::track {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  return '"' + base::replace_all(name, "\"", "\"\"") + '"';
}

std::string header_text(const std::vector<std::string>& columns) {
  std::string text = "step";
  for (const std::string& name : columns) text += "," + quoted(name);
  return text + "\n";
}

RecordFile new_table(const std::filesystem::path& path) {
  base::write_file_atomically(path, header_text({}));
  return RecordFile(path, RecordFile::Open::kAtEnd);
}

}  // namespace

CsvFile::CsvFile(const std::filesystem::path& path,
                 const std::filesystem::path& metrics)
    : file_(new_table(path)), header_bytes_(header_text({}).size()) {
  read_metrics(metrics, [this](const Record& kept) { record(kept); });
}

void CsvFile::record(const Record& record) {
  if (record.metrics.empty()) return;
  if (record.step != step_) {
    row_.assign(columns_.size(), "");
    row_bytes_ = 0;
    step_ = record.step;
  }
  for (const auto& [name, value] : record.metrics) {
    cell(name) = number_text(value);
  }
  if (columns_.size() > num_columns_written_) {
    write_wider_table();
  } else {
    file_.replace_end(row_bytes_, row_text());
  }
  row_bytes_ = row_text().size();
}

std::string& CsvFile::cell(const std::string& name) {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found != columns_.end()) {
    return row_[static_cast<size_t>(found - columns_.begin())];
  }
  columns_.push_back(name);
  return row_.emplace_back();
}

std::string CsvFile::row_text() const {
  std::string text = fmt::format("{}", step_);
  for (const std::string& value : row_) text += "," + value;
  return text + "\n";
}

// Earlier rows are copied with empty cells behind them: outside of the header a
// newline always ends a row.
void CsvFile::write_wider_table() {
  const std::string header = header_text(columns_);
  const std::string ending =
      std::string(columns_.size() - num_columns_written_, ',') + "\n";
  base::AtomicFile wider(file_.path());
  wider.write(header);
  std::ifstream earlier(file_.path(), std::ios::binary);
  earlier.seekg(static_cast<std::streamoff>(header_bytes_));
  size_t rest = static_cast<size_t>(file_.size()) - header_bytes_ - row_bytes_;
  std::string chunk;
  while (earlier && rest > 0) {
    chunk.resize(std::min(rest, kChunkBytes));
    earlier.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    chunk.resize(static_cast<size_t>(earlier.gcount()));
    rest -= chunk.size();
    wider.write(base::replace_all(chunk, "\n", ending));
  }
  wider.write(row_text());
  wider.commit();
  file_ = RecordFile(file_.path(), RecordFile::Open::kAtEnd);
  header_bytes_ = header.size();
  num_columns_written_ = columns_.size();
}

}  // namespace lockstep::track
