#include "lockstep/prepare/parquet_file.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using BatchReader = std::unique_ptr<arrow::RecordBatchReader>;

// The numbers of an array, whatever their type; no value for others.
std::optional<std::vector<double>> as_numbers(const arrow::Array& array) {
  std::vector<double> numbers;
  const auto copy = [&]<typename Typed>(const Typed& typed) {
    numbers.reserve(static_cast<size_t>(typed.length()));
    for (int64_t i = 0; i < typed.length(); ++i) {
      numbers.push_back(static_cast<double>(typed.Value(i)));
    }
  };
  switch (array.type_id()) {
    case arrow::Type::DOUBLE:
      copy(static_cast<const arrow::DoubleArray&>(array));
      break;
    case arrow::Type::FLOAT:
      copy(static_cast<const arrow::FloatArray&>(array));
      break;
    case arrow::Type::INT64:
      copy(static_cast<const arrow::Int64Array&>(array));
      break;
    case arrow::Type::INT32:
      copy(static_cast<const arrow::Int32Array&>(array));
      break;
    case arrow::Type::INT16:
      copy(static_cast<const arrow::Int16Array&>(array));
      break;
    case arrow::Type::INT8:
      copy(static_cast<const arrow::Int8Array&>(array));
      break;
    case arrow::Type::UINT8:
      copy(static_cast<const arrow::UInt8Array&>(array));
      break;
    default: return std::nullopt;
  }
  if (array.null_count() > 0) return std::nullopt;
  return numbers;
}

// The seven numbers of row `row`; no value for other types and sizes.
std::optional<Action> action_of(const arrow::Array& array, int64_t row) {
  std::shared_ptr<arrow::Array> values;
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::LIST:
      values = static_cast<const arrow::ListArray&>(array).value_slice(row);
      break;
    case arrow::Type::LARGE_LIST:
      values =
          static_cast<const arrow::LargeListArray&>(array).value_slice(row);
      break;
    case arrow::Type::FIXED_SIZE_LIST:
      values =
          static_cast<const arrow::FixedSizeListArray&>(array).value_slice(row);
      break;
    default: return std::nullopt;
  }
  if (values->length() != static_cast<int64_t>(kActionSize)) {
    return std::nullopt;
  }
  const auto numbers = as_numbers(*values);
  if (!numbers) return std::nullopt;
  Action action{};
  for (size_t i = 0; i < kActionSize; ++i) {
    action[i] = static_cast<float>((*numbers)[i]);
  }
  return action;
}

// Bytes of row `row`; no value where there are none.
std::optional<std::string_view> bytes_of(const arrow::Array& array,
                                         int64_t row) {
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::BINARY:
      return static_cast<const arrow::BinaryArray&>(array).GetView(row);
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
    case arrow::Type::STRUCT: {
      const auto& table = static_cast<const arrow::StructArray&>(array);
      const auto field = table.GetFieldByName("bytes");
      if (!field || field->type_id() == arrow::Type::STRUCT) {
        return std::nullopt;
      }
      return bytes_of(*field, row);
    }
    default: return std::nullopt;
  }
}

}  // namespace

struct ParquetFile::Impl {
  std::string path;
  std::unique_ptr<parquet::arrow::FileReader> reader = {};
  std::vector<std::string> columns = {};

  [[noreturn]] void refuse(const std::string& why) const {
    throw FormatError(fmt::format("'{}': {}", path, why));
  }

  void check(const arrow::Status& status) const {
    if (!status.ok()) {
      refuse("cannot be read as parquet; is it whole? (" + status.message() +
             ")");
    }
  }

  // The library answers damaged files by both of its kinds of errors.
  template <typename Work>
  void guarded(const Work& work) const {
    try {
      work();
    } catch (const parquet::ParquetException& error) {
      refuse(std::string("cannot be read as parquet; is it whole? (") +
             error.what() + ")");
    }
  }

  void open() {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.OpenFile(path, /*memory_map=*/false));
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_batch_size(16);
    check(builder.properties(properties)->Build(&reader));
    const auto* schema = reader->parquet_reader()->metadata()->schema();
    for (int i = 0; i < schema->group_node()->field_count(); ++i) {
      columns.push_back(schema->group_node()->field(i)->name());
    }
  }

  // Rows of some columns, in the file's order of columns.
  BatchReader rows(std::span<const std::string> wanted) const {
    const auto metadata = reader->parquet_reader()->metadata();
    const auto* schema = metadata->schema();
    std::vector<int> leaves;
    for (int i = 0; i < schema->num_columns(); ++i) {
      const std::string name = schema->Column(i)->path()->ToDotVector()[0];
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) {
        leaves.push_back(i);
      }
    }
    std::vector<int> groups(static_cast<size_t>(metadata->num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    auto result = reader->GetRecordBatchReader(groups, leaves);
    check(result.status());
    return *std::move(result);
  }

  // Calls take(array) for each part of one column.
  template <typename Take>
  void each_part(const std::string& column, const Take& take) const {
    guarded([&] {
      const std::vector<std::string> names = {column};
      const BatchReader reader_of_rows = rows(names);
      while (true) {
        std::shared_ptr<arrow::RecordBatch> batch;
        check(reader_of_rows->ReadNext(&batch));
        if (!batch) return;
        const auto array = batch->GetColumnByName(column);
        if (!array) refuse(no_column(column));
        take(*array);
      }
    });
  }

  std::string no_column(const std::string& column) const {
    return fmt::format("has no column '{}', but {}", column,
                       join(columns, ", "));
  }

  void take_pictures(const arrow::RecordBatch& batch,
                     std::span<const std::string> wanted,
                     const TakeBytes& take) const {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto array = batch.GetColumnByName(wanted[i]);
      if (!array) refuse(no_column(wanted[i]));
      for (int64_t row = 0; row < batch.num_rows(); ++row) {
        const auto bytes = bytes_of(*array, row);
        if (!bytes) {
          refuse(
              fmt::format("column '{}' ({}) has a row without the bytes of "
                          "a picture",
                          wanted[i], array->type()->ToString()));
        }
        take(i, *bytes);
      }
    }
  }
};

ParquetFile::ParquetFile(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(Impl{.path = path.string()})) {
  impl_->guarded([&] { impl_->open(); });
}

ParquetFile::~ParquetFile() = default;

const std::vector<std::string>& ParquetFile::columns() const {
  return impl_->columns;
}

size_t ParquetFile::num_rows() const {
  return static_cast<size_t>(
      impl_->reader->parquet_reader()->metadata()->num_rows());
}

std::vector<double> ParquetFile::numbers(const std::string& column) const {
  std::vector<double> all;
  impl_->each_part(column, [&](const arrow::Array& part) {
    const auto numbers = as_numbers(part);
    if (!numbers) {
      impl_->refuse(
          fmt::format("column '{}' ({}) does not hold a number in "
                      "every row",
                      column, part.type()->ToString()));
    }
    all.insert(all.end(), numbers->begin(), numbers->end());
  });
  return all;
}

std::vector<Action> ParquetFile::actions(const std::string& column) const {
  std::vector<Action> actions;
  impl_->each_part(column, [&](const arrow::Array& part) {
    for (int64_t row = 0; row < part.length(); ++row) {
      const auto action = action_of(part, row);
      if (!action) {
        impl_->refuse(
            fmt::format("column '{}' ({}) does not hold 7 numbers in "
                        "every row",
                        column, part.type()->ToString()));
      }
      actions.push_back(*action);
    }
  });
  return actions;
}

void ParquetFile::pictures(std::span<const std::string> columns,
                           const TakeBytes& take) const {
  impl_->guarded([&] {
    const BatchReader reader = impl_->rows(columns);
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      impl_->check(reader->ReadNext(&batch));
      if (!batch) return;
      impl_->take_pictures(*batch, columns, take);
    }
  });
}

}  // namespace lockstep
