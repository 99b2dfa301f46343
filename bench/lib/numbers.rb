# frozen_string_literal: true

module Bench
  # The little arithmetic there is.
  module Numbers
    module_function

    def median(values)
      return nil if values.empty?

      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # The smallest sample that `part` of all samples do not exceed.
    def percentile(sorted, part)
      sorted[[(part * sorted.size).ceil, 1].max - 1]
    end

    # Percentiles of the samples of all rounds together; nil if a round has failed.
    def pool(cells)
      return nil unless cells.all? { |cell| cell && cell[:samples]&.any? }

      sorted = cells.flat_map { |cell| cell[:samples] }.sort
      { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
    end
  end
end
